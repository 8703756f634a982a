// Operation graphs at other shapes than those they were made with.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "graph_descriptor.h"

namespace hipdnn_port {

/// What a variant pack says of one operand in the place of its tensor. `dims` and `strides` are as many.
struct Override {
  std::int64_t uid;
  std::vector<std::int64_t> dims, strides;

  bool operator==(const Override&) const = default;
};

/// The finalized graph with its operands at these shapes, and the virtual tensors at those that the operations make of them. BAD_PARAM where a uid is
/// no operand, a shape is larger than the graph's, of another rank or order in memory, or the operations do not fit; NOT_SUPPORTED where an
/// operation's virtual result cannot be told.
std::shared_ptr<GraphDescriptor> at_shapes(const GraphDescriptor& graph, std::span<const Override> overrides);

}  // namespace hipdnn_port
