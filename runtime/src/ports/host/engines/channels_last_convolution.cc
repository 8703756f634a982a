#include "channels_last_convolution.h"

#include <cstddef>

#include "frontend/engine.h"
#include "frontend/status.h"
#include "onednn_memory.h"
#include "rowwise_program.h"

namespace hipdnn_port {
namespace {

constexpr std::size_t kRank = 4;

/// n c h w -> n h w c.
template <class Sizes>
Sizes with_channels_last(const Sizes& sizes) {
  return {sizes[0], sizes[2], sizes[3], sizes[1]};
}

Graph with_channels_last(Graph graph) {
  for (Tensor& tensor : graph.tensors) {
    if (tensor.dims.size() > kRank) throw Refusal("has tensors of other ranks than 4");
    tensor = onednn::broadcast_view(tensor, kRank);
    tensor.dims = with_channels_last(tensor.dims);
    tensor.strides = with_channels_last(tensor.strides);
  }
  return graph;
}

}  // namespace

ChannelsLastConvolution read_channels_last_convolution(const Graph& graph) {
  if (graph.nodes.empty() || graph.nodes[0].type != HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) throw Refusal("the first node is no convolution");
  const Node& node = graph.nodes[0];
  ChannelsLastConvolution found;
  found.x = node.tensor(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
  found.w = node.tensor(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
  const int y = node.tensor(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
  const Tensor& x = graph.tensor(found.x);
  const std::vector<std::int64_t>& result = graph.tensor(y).dims;
  if (x.dims.size() != kRank) throw Refusal("takes images of two dimensions");
  for (const int t : {found.x, found.w}) {
    if (graph.tensor(t).dtype != HIPDNN_DATA_FLOAT || !graph.tensor(t).has_pointer()) throw Refusal(text("takes float32, not ", describe(graph.tensor(t))));
  }
  if (node.integer_or(HIPDNN_ATTR_CONVOLUTION_CONV_MODE, HIPDNN_CROSS_CORRELATION) != HIPDNN_CROSS_CORRELATION) throw Refusal("flips its filter");
  found.images = x.dims[0], found.channels = x.dims[1], found.height = x.dims[2], found.width = x.dims[3];
  found.result_channels = result[1], found.result_height = result[2], found.result_width = result[3];
  found.steps = node.ints(HIPDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  found.dilations = node.ints(HIPDNN_ATTR_CONVOLUTION_DILATIONS);
  if (x.strides[1] != 1) throw Refusal("takes images with channels last");
  const std::vector<std::int64_t> before = node.ints(HIPDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  found.above = before[0], found.left = before[1];
  found.graph = with_channels_last(graph);
  found.epilogue = read_row_epilogue(found.graph, 0, y);
  if (found.graph.tensor(found.epilogue.result).strides.back() != 1) throw Refusal("takes results with channels last");
  return found;
}

}  // namespace hipdnn_port
