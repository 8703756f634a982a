// HIP's module functions on images that are text.
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "cases.h"
#include "frontend/port_extensions.h"
#include "hipdnn_host.h"

namespace abi {
namespace {

/// y = x + x on f32[4].
const std::string doubling = R"({"function": "elementwise", "tensors": [
  {"role": "in", "dtype": "f32", "dims": [4], "strides": [1]}, {"role": "out", "dtype": "f32", "dims": [4], "strides": [1]}],
  "attributes": {"code": [["load", 0], ["add", 0, 0], ["store", 1, 1]]}})";

struct Modules {
  explicit Modules(const Library& library)
      : load(library.hip.get<decltype(::hipModuleLoadData)>("hipModuleLoadData")),
        unload(library.hip.get<decltype(::hipModuleUnload)>("hipModuleUnload")),
        find(library.hip.get<decltype(::hipModuleGetFunction)>("hipModuleGetFunction")),
        launch(library.hip.get<decltype(::hipModuleLaunchKernel)>("hipModuleLaunchKernel")),
        last_error(library.hip.get<decltype(::hipdnnPortLastKernelError_ext)>("hipdnnPortLastKernelError_ext")),
        set_threads(library.hip.get<decltype(::hipdnnHostSetModuleThreads_ext)>("hipdnnHostSetModuleThreads_ext")) {}

  hipError_t run(hipFunction_t function, std::vector<void*> pointers) const {
    std::vector<void*> addresses;
    for (void*& pointer : pointers) addresses.push_back(&pointer);
    return launch(function, 1, 1, 1, 1, 1, 1, 0, nullptr, addresses.data(), nullptr);
  }

  decltype(&::hipModuleLoadData) load;
  decltype(&::hipModuleUnload) unload;
  decltype(&::hipModuleGetFunction) find;
  decltype(&::hipModuleLaunchKernel) launch;
  decltype(&::hipdnnPortLastKernelError_ext) last_error;
  decltype(&::hipdnnHostSetModuleThreads_ext) set_threads;
};

void test_launched_when_loaded(const Library& library) {
  const Modules hip(library);
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  check::equal(hip.load(&module, doubling.c_str()), hipSuccess);
  check::equal(std::string(hip.last_error()), std::string());
  check::equal(hip.find(&function, module, "elementwise"), hipSuccess);
  check::equal(hip.set_threads(module, 2), hipSuccess);
  check::equal(hip.set_threads(module, 0), hipErrorInvalidValue);
  check::equal(hip.set_threads(nullptr, 2), hipErrorInvalidHandle);
  std::array<float, 4> x{1, 2, 3, 4}, y{};
  check::equal(hip.run(function, {x.data(), y.data()}), hipSuccess);
  for (std::size_t i = 0; i < 4; ++i) check::equal(y[i], 2 * x[i]);
  // In place: the output is the input's memory.
  check::equal(hip.run(function, {x.data(), x.data()}), hipSuccess);
  check::equal(x[3], 8.0F);
  check::equal(hip.unload(module), hipSuccess);
}

void test_refused_when_arguments_are_wrong(const Library& library) {
  const Modules hip(library);
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  check::equal(hip.load(nullptr, doubling.c_str()), hipErrorInvalidValue);
  check::equal(hip.load(&module, nullptr), hipErrorInvalidValue);
  check::equal(hip.unload(nullptr), hipErrorInvalidHandle);
  check::equal(hip.load(&module, doubling.c_str()), hipSuccess);
  check::equal(hip.find(nullptr, module, "elementwise"), hipErrorInvalidValue);
  check::equal(hip.find(&function, module, nullptr), hipErrorInvalidValue);
  check::equal(hip.find(&function, nullptr, "elementwise"), hipErrorInvalidHandle);
  check::equal(hip.find(&function, module, "gather"), hipErrorNotFound);
  check::contains(hip.last_error(), "the module's function is 'elementwise', not 'gather'");
  check::equal(hip.find(&function, module, "elementwise"), hipSuccess);
  std::array<float, 5> x{};
  check::equal(hip.run(nullptr, {x.data(), x.data()}), hipErrorInvalidHandle);
  check::equal(hip.run(function, {x.data(), nullptr}), hipErrorLaunchFailure);
  check::contains(hip.last_error(), "tensors[1]: null pointer");
  check::equal(hip.run(function, {reinterpret_cast<std::byte*>(x.data()) + 1, x.data()}), hipErrorLaunchFailure);
  check::contains(hip.last_error(), "tensors[0]: the pointer is not aligned to 4 bytes");
  check::equal(hip.launch(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), hipErrorLaunchFailure);
  void* pointer = x.data();
  std::array<void*, 2> addresses{&pointer, &pointer};
  check::equal(hip.launch(function, 2, 1, 1, 1, 1, 1, 0, nullptr, addresses.data(), nullptr), hipErrorLaunchFailure);
  check::contains(hip.last_error(), "one block of one thread, got a size of 2");
  check::equal(hip.launch(function, 1, 1, 1, 1, 1, 1, 0, nullptr, addresses.data(), nullptr), hipSuccess);
  check::equal(std::string(hip.last_error()), std::string(), "a success forgets the failure before");
  hip.unload(module);
}

void test_refused_when_the_image_is_wrong(const Library& library) {
  const Modules hip(library);
  const auto refuse = [&](const std::string& image, const char* expected) {
    hipModule_t module = nullptr;
    check::equal(hip.load(&module, image.c_str()), hipErrorInvalidImage, image);
    check::that(module == nullptr, "no module");
    check::contains(hip.last_error(), expected);
  };
  refuse("", "not a JSON object");
  refuse("\x7f""ELF", "not a JSON object");
  refuse("[1]", "not a JSON object");
  refuse(std::string(100'000, '['), "not a JSON object");
  refuse("{}", "image.function: missing");
  refuse(R"({"function": 5})", "image.function: expected a string, got 5");
  refuse(R"({"function": "elementwise", "tensors": 1})", "image.tensors: expected a list");
  refuse(R"({"function": "elementwise", "tensors": [1]})", "tensors[0].role: missing");
  refuse(R"({"function": "elementwise", "tensors": [], "attributes": []})", "image.attributes: expected an object");
  refuse(R"({"function": "mop", "tensors": [], "attributes": {}})", "no function is named 'mop'");
  refuse(R"({"function": "elementwise", "tensors": [], "attributes": {"code": []}})", "expected at least one out");
  const auto tensor = [](const std::string& dims, const std::string& strides, const std::string& role = "out") {
    return R"({"function": "elementwise", "tensors": [{"role": ")" + role + R"(", "dtype": "f64", "dims": )" + dims + R"(, "strides": )" + strides +
           R"(}], "attributes": {"code": []}})";
  };
  refuse(tensor("[4]", "[1, 1]"), "1 dims but 2 strides");
  refuse(tensor("[4]", "[0]"), "an output does not broadcast");
  refuse(tensor("[-1]", "[1]"), "expected an integer from 0");
  refuse(tensor("[4]", "[4611686018427387904]"), "size overflows 64 bits");
  refuse(tensor("[4294967296, 4294967296]", "[0, 0]", "in"), "size overflows 64 bits");
  refuse(tensor("[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]", "[]"), "at most 32");
}

void test_no_crash_when_images_are_damaged(const Library& library) {
  const Modules hip(library);
  std::mt19937 generator(5);
  int loaded = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string image = doubling;
    for (std::uint32_t edit = 0; edit <= generator() % 2; ++edit) {
      constexpr std::string_view replacements = "0123456789-,.[]{}\":aeo ";
      image[generator() % image.size()] = replacements[generator() % replacements.size()];
    }
    hipModule_t module = nullptr;
    if (hip.load(&module, image.c_str()) != hipSuccess) continue;
    ++loaded;
    hip.unload(module);
  }
  check::that(loaded > 100, "some damage is harmless");
}

}  // namespace

void add_host_module_cases(check::Suite& suite, const Library& library) {
  suite.add("host module: launched when loaded", [&] { test_launched_when_loaded(library); });
  suite.add("host module: refused when arguments are wrong", [&] { test_refused_when_arguments_are_wrong(library); });
  suite.add("host module: refused when the image is wrong", [&] { test_refused_when_the_image_is_wrong(library); });
  suite.add("host module: no crash when images are damaged", [&] { test_no_crash_when_images_are_damaged(library); });
}

}  // namespace abi
