#include "tensors.h"

#include <algorithm>
#include <numeric>

namespace hipdnn_cuda {
namespace {

using hipdnn_port::Graph;
using hipdnn_port::Node;
using hipdnn_port::Tensor;

bool slides_a_window(const Node& node) {
  return node.type == HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
         node.type == HIPDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
         node.type == HIPDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR;
}

/// Leading dims beyond three that are 1 everywhere.
std::size_t empty_batch_dims(const Graph& graph, std::size_t rank) {
  std::size_t dropped = 0;
  while (rank - dropped > 3 && std::ranges::all_of(graph.tensors, [&](const Tensor& tensor) { return tensor.dims[dropped] == 1; })) ++dropped;
  return dropped;
}

/// cuDNN normalizes channels that lie along memory.
bool is_norm(const Node& node) {
  return node.type == HIPDNN_BACKEND_OPERATION_LAYERNORM_DESCRIPTOR_EXT || node.type == HIPDNN_BACKEND_OPERATION_RMSNORM_DESCRIPTOR_EXT;
}

bool is_channels_last(const Tensor& tensor) { return tensor.rank() >= 3 && tensor.dims[1] > 1 && tensor.strides[1] == 1; }

}  // namespace

RankFill rank_fill(const Graph& graph) {
  const bool has_window = std::ranges::any_of(graph.nodes, slides_a_window);
  std::size_t rank = 0;
  for (const Tensor& tensor : graph.tensors) rank = std::max(rank, tensor.dims.size());
  const std::size_t least = has_window ? 4 : 3;
  const auto matmuls = std::ranges::count(graph.nodes, HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, &Node::type);
  const bool has_one_rank = std::ranges::all_of(graph.tensors, [&](const Tensor& tensor) { return tensor.dims.size() == rank; });
  return {.position = has_window ? std::size_t{2} : std::size_t{0},
          .count = rank < least ? least - rank : 0,
          .dropped = matmuls == 1 && has_one_rank ? empty_batch_dims(graph, rank) : 0,
          .is_channels_last = std::ranges::any_of(graph.nodes, is_norm) || (has_window && std::ranges::any_of(graph.tensors, is_channels_last))};
}

Shape filled(const Tensor& tensor, const RankFill& fill) {
  const auto first = static_cast<std::ptrdiff_t>(fill.dropped);
  Shape shape{{tensor.dims.begin() + first, tensor.dims.end()}, {tensor.strides.begin() + first, tensor.strides.end()}};
  const auto position = static_cast<std::ptrdiff_t>(std::min(fill.position, shape.dims.size()));
  shape.dims.insert(shape.dims.begin() + position, fill.count, 1);
  shape.strides.insert(shape.strides.begin() + position, fill.count, 1);
  std::vector<std::size_t> order(shape.dims.size());  // outermost first
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (fill.is_channels_last && order.size() >= 3) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  std::int64_t extent = 1;
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    if (shape.dims[*dim] == 1) shape.strides[*dim] = extent;
    extent = std::max(extent, shape.strides[*dim] * shape.dims[*dim]);
  }
  return shape;
}

}  // namespace hipdnn_cuda
