#include "fixture.h"

#include <dlfcn.h>

#include <stdexcept>

namespace memory_tests {
namespace {

template <typename Function>
void load(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (function == nullptr) throw std::runtime_error(std::string(symbol) + " is missing");
}

}  // namespace

FakeHip::FakeHip(const Libraries& libraries) {
  void* library = dlopen((libraries.fake + "/libamdhip64.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  load(library, "fakeHipCounts", counts);
  load(library, "fakeHipPending", pending);
  load(library, "fakeHipLaunch", launch);
  load(library, "fakeHipSetCapacity", set_capacity);
  load(library, "fakeHipCurrentDevice", current_device);
  load(library, "fakeHipDeviceOf", device_of);
  load(library, "fakeHipFailNext", fail_next);
  set_capacity(std::size_t{1} << 30);
}

std::shared_ptr<hipdnn_ep::DeviceMemory> open_memory(const Libraries& libraries, hipdnn_ep::DeviceMemory::Options options, int ordinal) {
  auto device = std::make_shared<const hipdnn_rt::Device>(hipdnn_rt::Library::open("hip", libraries.fake),
                                                          hipdnn_rt::DeviceOptions{.device = ordinal, .compare_plans = false});
  return std::make_shared<hipdnn_ep::DeviceMemory>(std::move(device), options);
}

}  // namespace memory_tests
