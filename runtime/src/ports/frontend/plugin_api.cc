// Which graphs need a newer plugin interface, as AMD's backend has it (plugin_sdk PluginVersionConstants.hpp, read in a version of 2026).
#include "plugin_api.h"

#include <algorithm>
#include <atomic>

#include "status.h"

namespace hipdnn_port {
namespace {

constexpr int first_with_alignments = 3;
std::atomic<int> plugin_api{first_with_alignments};

}  // namespace

void set_plugin_api(int minor) { plugin_api = minor; }

std::optional<std::string> withheld_from_plugins(const Graph& graph) {
  if (plugin_api.load(std::memory_order_relaxed) >= first_with_alignments) return std::nullopt;
  const std::int64_t usual = Tensor{}.byte_alignment;
  const auto other = std::ranges::find_if(graph.tensors, [&](const Tensor& tensor) { return tensor.byte_alignment != usual; });
  if (other == graph.tensors.end()) return std::nullopt;
  return text("tensor ", describe(*other), " states an alignment of ", other->byte_alignment, " bytes, which plugins take from version 1.",
              first_with_alignments, " of their interface on");
}

}  // namespace hipdnn_port
