// Graphs of pointwise operations alone, in the few dims that cuDNN takes.
#pragma once

#include <optional>
#include <string>

#include "frontend/graph.h"

namespace hipdnn_cuda {

bool is_elementwise(const hipdnn_port::Graph& graph);
/// Why cuDNN must not have such a graph; nothing where it may. cuDNN 9.19 computes garbage where an intermediate broadcasts, and where an operand
/// broadcasts in the first of three dims (bench/gpu/norms.py). Requires is_elementwise.
std::optional<std::string> why_not_elementwise(const hipdnn_port::Graph& graph);
/// The graph with three dims, those that lie next to each other in every tensor merged, slowest first: cuDNN has no engine for four dims in C
/// order. Unchanged where more than three would be left, or tensors broadcast in a dim in part. Requires is_elementwise.
hipdnn_port::Graph with_merged_dims(const hipdnn_port::Graph& graph);

}  // namespace hipdnn_cuda
