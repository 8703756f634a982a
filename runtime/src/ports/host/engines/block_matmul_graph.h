// What HOST_BLOCK_MATMUL_ENGINE reads out of a graph.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/graph.h"
#include "kernels_tile.h"

namespace hipdnn_port {

/// One step of the epilogue on a tile of float32.
struct TileStep {
  TileKernel kernel = nullptr;
  double parameter = 0.0;
  int operand = -1;  ///< index in Graph::tensors of what is combined with, or -1
};

/// Tensors are indices in Graph::tensors.
struct BlockMatmul {
  int a = -1, numbers = -1, scales = -1, result = -1;
  std::int64_t block = 0;
  std::int64_t a_block = 0;  ///< of the left operand's quantization, 0 where there is none
  std::vector<TileStep> steps;
};

/// Throws a Refusal with the reason where the engine does not take the graph.
BlockMatmul read_block_matmul(const Graph& graph);

}  // namespace hipdnn_port
