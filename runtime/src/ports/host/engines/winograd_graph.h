// What HOST_WINOGRAD_ENGINE reads out of a graph.
#pragma once

#include <array>
#include <cstdint>

#include "frontend/graph.h"
#include "matmul_epilogue.h"

namespace hipdnn_port {

/// A convolution with 3 x 3 taps in steps of one; sizes in pixels and channels.
struct WinogradConvolution {
  int x = -1;  ///< indices in Graph::tensors
  int w = -1;
  std::int64_t images = 0, height = 0, width = 0, channels = 0;
  std::int64_t result_height = 0, result_width = 0, result_channels = 0;
  std::int64_t above = 0, left = 0;  ///< rows and columns of zeros
  Graph graph;                       ///< the same with channels along the last dim of all tensors
  MatmulEpilogue epilogue;           ///< of `graph`

  std::int64_t tile_rows() const { return (result_height + 1) / 2; }
  std::int64_t tile_columns() const { return (result_width + 1) / 2; }
  std::int64_t tiles() const { return images * tile_rows() * tile_columns(); }
};

/// Throws a Refusal with the reason where it is none, or none for which that pays.
WinogradConvolution read_winograd(const Graph& graph);

}  // namespace hipdnn_port
