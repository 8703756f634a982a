// Scaled dot product attention as the operations that cuDNN's fused engines recognize.
#pragma once

#include <optional>
#include <string>

#include "frontend/graph.h"

namespace hipdnn_cuda {

bool is_attention(const hipdnn_port::Graph& graph);

/// Why the node cannot be written out; nothing where it can.
std::optional<std::string> why_not_written_out(const hipdnn_port::Graph& graph);

/// The graph with matmuls, pointwise operations and reductions in the place of its one attention node: scores = query * key^T * scale + mask,
/// softmax of them, the matmul with the values. Requires why_not_written_out to have no reason.
hipdnn_port::Graph written_out(const hipdnn_port::Graph& graph);

}  // namespace hipdnn_cuda
