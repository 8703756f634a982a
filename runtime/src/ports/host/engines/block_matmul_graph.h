// What HOST_BLOCK_MATMUL_ENGINE reads out of a graph.
#pragma once

#include <cstdint>

#include "frontend/graph.h"
#include "matmul_epilogue.h"

namespace hipdnn_port {

/// Tensors are indices in Graph::tensors.
struct BlockMatmul {
  int a = -1, numbers = -1, scales = -1;
  std::int64_t block = 0;
  std::int64_t a_block = 0;  ///< of the left operand's quantization, 0 where there is none
  MatmulEpilogue epilogue;
};

/// Throws a Refusal with the reason where the engine does not take the graph.
BlockMatmul read_block_matmul(const Graph& graph);

}  // namespace hipdnn_port
