// Graphs that are written anew for cuDNN: with nodes and tensors that hipDNN's graph does not have.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/graph.h"

namespace hipdnn_cuda {

using Dims = std::vector<std::int64_t>;

/// Begins with a graph's tensors and none of its nodes. Tensors are known by their numbers.
class GraphWriter {
 public:
  explicit GraphWriter(const hipdnn_port::Graph& graph);

  /// Until the next tensor is made.
  hipdnn_port::Tensor& tensor(int index) { return made_.tensors[static_cast<std::size_t>(index)]; }

  /// A tensor in C order that is never in memory.
  int intermediate(const Dims& dims, hipdnnDataType_t dtype = HIPDNN_DATA_FLOAT);
  /// A baked f32 of `rank` dims of 1.
  int number(float value, std::size_t rank);
  void append(hipdnn_port::Node node) { made_.nodes.push_back(std::move(node)); }
  /// A pointwise node; answers its result.
  int pointwise(hipdnnPointwiseMode_t mode, const std::vector<int>& inputs, int output, hipdnnDataType_t precision = HIPDNN_DATA_FLOAT);

  hipdnn_port::Node& last_node() { return made_.nodes.back(); }
  hipdnn_port::Graph take() { return std::move(made_); }

 private:
  int append(hipdnn_port::Tensor tensor);

  hipdnn_port::Graph made_;
  std::int64_t last_uid_ = 0;
};

}  // namespace hipdnn_cuda
