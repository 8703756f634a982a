// A graph as hipDNN's backend gives it to plugins, as the descriptors that the host library takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "program/descriptor_spec.h"

namespace hipdnn_plugin {

/// Other dims and strides of one tensor.
struct ShapeOverride {
  std::int64_t uid;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;

  friend bool operator==(const ShapeOverride&, const ShapeOverride&) = default;
};

struct ReadGraph {
  /// Tensors, operations, and at last the graph; each refers to those before it.
  std::vector<hipdnn_rt::DescriptorSpec> descriptors;
  /// Whether executions may come with other shapes.
  bool takes_overrides = false;
  /// Whether it has tensors that nobody but the graph sees, whose shapes no override says.
  bool has_virtual_tensors = false;
};

/// Throws Failure: INVALID_VALUE for bytes that are no graph, NOT_APPLICABLE for a graph that no descriptors can say.
/// Source: graph_tables.json.
ReadGraph read_graph(std::span<const std::byte> bytes);

/// The descriptors with these shapes. Throws INVALID_VALUE for a uid that no tensor has.
std::vector<hipdnn_rt::DescriptorSpec> with_shapes(std::vector<hipdnn_rt::DescriptorSpec> descriptors, std::span<const ShapeOverride> overrides);

}  // namespace hipdnn_plugin
