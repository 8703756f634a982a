#include "small_runs.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "execute/context.h"
#include "execute/loaded_program.h"
#include "program/checked.h"
#include "program/dynamic_program.h"

namespace fuzz {
namespace {

using hipdnn_rt::Program;

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

/// Arrays of the arguments, aligned as the runtime wants them: any bytes, or words from 0 to 3, which are indices of most tensors.
class Arrays {
 public:
  Arrays(const std::vector<hipdnn_rt::Argument>& arguments, bool is_wild) {
    std::uint32_t next = 1;
    for (const hipdnn_rt::Argument& argument : arguments) {
      for (Line& line : memory_.emplace_back((argument.bytes + 15) / 16 + 1)) {
        for (std::size_t i = 0; i < sizeof line.bytes; i += is_wild ? 1 : 8) {
          next = next * 1664525 + 1013904223;
          line.bytes[i] = static_cast<std::byte>(next >> (is_wild ? 24 : 30));
        }
      }
    }
  }
  template <class Bound>
  std::vector<Bound> bound() {
    std::vector<Bound> found;
    for (auto& array : memory_) found.push_back({array.data()});
    return found;
  }

 private:
  struct alignas(16) Line {
    std::byte bytes[16]{};
  };
  std::vector<std::vector<Line>> memory_;
};

}  // namespace

std::shared_ptr<const hipdnn_rt::Device> host_device() {
  static const auto device = std::make_shared<const hipdnn_rt::Device>(hipdnn_rt::Library::open("host", HOST_FOLDER), hipdnn_rt::DeviceOptions{.threads = 1});
  return device;
}

void run(const std::shared_ptr<const Program>& program) {
  const auto loaded = hipdnn_rt::LoadedProgram::load(host_device(), program);
  if (!is_small(*program, loaded->arena_bytes())) return;
  hipdnn_rt::Context context(loaded);
  for (const bool is_wild : {false, true}) {
    Arrays inputs(program->inputs(), is_wild), outputs(program->outputs(), false);
    context.run(inputs.bound<hipdnn_rt::InputArray>(), outputs.bound<hipdnn_rt::OutputArray>());
  }
}

void run_alone(std::string_view list, const nlohmann::json& member, std::span<const hipdnn_rt::Operand> operands) {
  const bool is_graph = list == "executables";
  nlohmann::json document{{"format", 1},         {"target", "host"},     {"producer", nlohmann::json::object()}, {"model", nlohmann::json::object()},
                          {"inputs", nlohmann::json::array()},  {"outputs", nlohmann::json::array()}, {"constants", nlohmann::json::array()},
                          {"buffers", nlohmann::json::array()}, {"executables", nlohmann::json::array()}, {"kernels", nlohmann::json::array()},
                          {"steps", nlohmann::json::array()}};
  nlohmann::json places = nlohmann::json::array();
  for (const hipdnn_rt::Operand& operand : operands) {
    const std::size_t buffer = places.size();
    document[operand.is_output ? "outputs" : "inputs"].push_back(
        {{"name", std::to_string(buffer)}, {"dtype", "u8"}, {"dims", {operand.extent_bytes}}, {"buffer", buffer}});
    document["buffers"].push_back({{"kind", operand.is_output ? "output" : "input"}, {"bytes", operand.extent_bytes}});
    places.push_back({{"buffer", buffer}, {"offset", 0}});
  }
  document[list].push_back(member);
  document["steps"].push_back({{"kind", is_graph ? "execute" : "launch"}, {is_graph ? "executable" : "kernel", 0}, {"name", "alone"}, {"operands", places}});
  run(hipdnn_rt::DynamicProgram::parse(document.dump(), {}, nullptr)->at({}));
}

}  // namespace fuzz
