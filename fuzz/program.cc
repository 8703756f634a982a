// A program file: loaded, and run on the host port where it is small. Errors of the runtime are what a broken file is to end in.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "device/error.h"
#include "execute/context.h"
#include "execute/loaded_program.h"
#include "program/checked.h"
#include "program/dynamic_program.h"

namespace {

using hipdnn_rt::Program;

/// Of memory, and of elements of a tensor: larger programs are loaded only.
constexpr std::uint64_t kRunLimit = 1 << 20;
constexpr std::int64_t kSize = 3;

bool is_small(const std::vector<std::int64_t>& dims) {
  std::optional<std::uint64_t> count = 1;
  for (const std::int64_t dim : dims) count = count ? hipdnn_rt::checked_multiply(*count, static_cast<std::uint64_t>(dim)) : std::nullopt;
  return count && *count <= kRunLimit;
}

bool is_small(const hipdnn_rt::Executable& executable) {
  return std::ranges::all_of(executable.descriptors, [](const hipdnn_rt::DescriptorSpec& spec) {
    const hipdnn_rt::AttributeSpec* dims = find_attribute(spec, HIPDNN_ATTR_TENSOR_DIMENSIONS);
    return dims == nullptr || is_small(integers_of(*dims));
  });
}

bool is_small(const hipdnn_rt::Kernel& kernel) {
  const nlohmann::json tensors = nlohmann::json::parse(kernel.description()).at("tensors");
  return std::ranges::all_of(tensors, [](const nlohmann::json& tensor) { return is_small(tensor.at("dims").get<std::vector<std::int64_t>>()); });
}

bool is_small(const Program& program, std::uint64_t bytes) {
  for (const hipdnn_rt::Buffer& buffer : program.buffers()) bytes = buffer.bytes > kRunLimit ? kRunLimit + 1 : bytes + buffer.bytes;
  const auto is_each = [](const auto& parts) { return std::ranges::all_of(parts, [](const auto& part) { return is_small(part); }); };
  return bytes <= kRunLimit && is_each(program.executables()) && is_each(program.kernels());
}

/// Arrays of the arguments, aligned as the runtime wants them.
class Arrays {
 public:
  explicit Arrays(const std::vector<hipdnn_rt::Argument>& arguments) {
    for (const hipdnn_rt::Argument& argument : arguments) memory_.emplace_back((argument.bytes + 15) / 16 + 1);
  }
  template <class Bound>
  std::vector<Bound> bound() {
    std::vector<Bound> found;
    for (auto& array : memory_) found.push_back({array.data()});
    return found;
  }

 private:
  struct alignas(16) Line {
    std::byte bytes[16];
  };
  std::vector<std::vector<Line>> memory_;
};

void run(const std::shared_ptr<const hipdnn_rt::Device>& device, const std::shared_ptr<const Program>& program) {
  const auto loaded = hipdnn_rt::LoadedProgram::load(device, program);
  if (!is_small(*program, loaded->arena_bytes())) return;
  Arrays inputs(program->inputs()), outputs(program->outputs());
  hipdnn_rt::Context(loaded).run(inputs.bound<hipdnn_rt::InputArray>(), outputs.bound<hipdnn_rt::OutputArray>());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto device = std::make_shared<const hipdnn_rt::Device>(hipdnn_rt::Library::open("host", HOST_FOLDER), hipdnn_rt::DeviceOptions{.threads = 1});
  // As a mapped file, the bytes begin where a page does.
  std::vector<std::max_align_t> memory(size / sizeof(std::max_align_t) + 1);
  const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(memory.data()), size);
  std::ranges::copy(std::as_bytes(std::span(data, size)), bytes.begin());
  try {
    const auto open = hipdnn_rt::DynamicProgram::parse_container(bytes, nullptr);
    run(device, open->at(hipdnn_rt::Sizes(open->symbols().size(), kSize)));
  } catch (const hipdnn_rt::Error&) {
    return 0;
  }
  return 0;
}
