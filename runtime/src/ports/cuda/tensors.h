// Shapes and strides as cuDNN wants them.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/graph.h"

namespace hipdnn_cuda {

/// How the ranks of a graph's tensors are filled up to one that cuDNN takes.
struct RankFill {
  /// Ones are put in before this dim.
  std::size_t position;
  std::size_t count;
  /// Leading dims that are 1 in every tensor and are left out: single matmuls are of three dims, attention is of four.
  std::size_t dropped;
  /// Strides of dims of size 1 follow the order of channels-last memory rather than that of the dims.
  bool is_channels_last;
};

RankFill rank_fill(const hipdnn_port::Graph& graph);

struct Shape {
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;
};

/// The tensor's dims and strides with ones put in, and with strides of dims of size 1 that agree with its layout: cuDNN tells layouts by strides.
Shape filled(const hipdnn_port::Tensor& tensor, const RankFill& fill);

}  // namespace hipdnn_cuda
