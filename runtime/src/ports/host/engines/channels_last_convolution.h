// A convolution of float32 images with channels last, and its epilogue, as engines read it out of a graph.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/graph.h"
#include "matmul_epilogue.h"

namespace hipdnn_port {

/// Sizes are in pixels and channels.
struct ChannelsLastConvolution {
  int x = -1;  ///< indices in Graph::tensors
  int w = -1;
  std::int64_t images = 0, height = 0, width = 0, channels = 0;
  std::int64_t result_height = 0, result_width = 0, result_channels = 0;
  std::int64_t above = 0, left = 0;  ///< rows and columns of zeros
  std::vector<std::int64_t> steps, dilations;
  Graph graph;              ///< the same with channels along the last dim of all tensors
  MatmulEpilogue epilogue;  ///< of `graph`
};

/// Throws a Refusal with the reason where the graph is none.
ChannelsLastConvolution read_channels_last_convolution(const Graph& graph);

}  // namespace hipdnn_port
