#include "winograd_graph.h"

#include <utility>
#include <vector>

#include "frontend/engine.h"
#include "frontend/status.h"
#include "kernels_winograd.h"
#include "onednn_memory.h"
#include "rowwise_program.h"

namespace hipdnn_port {
namespace {

using Dims = std::vector<std::int64_t>;

constexpr std::size_t kRank = 4;
/// With fewer tiles, the transformed weights, 16 numbers in the place of 9, take longer to read than the products saved.
constexpr std::int64_t kLeastTiles = 36;
/// With fewer channels, the transforms take longer than that: with 32, up to 1.4 times as long as a direct convolution, with 64 from 0.65 to 0.8.
constexpr std::int64_t kLeastChannels = 64;

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

void require_taps(const Graph& graph, const Node& node, const WinogradConvolution& found) {
  const Dims one{1, 1};
  if (node.integer_or(HIPDNN_ATTR_CONVOLUTION_CONV_MODE, HIPDNN_CROSS_CORRELATION) != HIPDNN_CROSS_CORRELATION) throw Refusal("flips its filter");
  const Tensor& w = graph.tensor(found.w);
  if (w.dims[2] != 3 || w.dims[3] != 3 || node.ints(HIPDNN_ATTR_CONVOLUTION_FILTER_STRIDES) != one || node.ints(HIPDNN_ATTR_CONVOLUTION_DILATIONS) != one) {
    throw Refusal("takes 3 x 3 taps in steps of one");
  }
  if (w.dims[1] != found.channels) throw Refusal("has groups");
  if (found.channels < kLeastChannels || found.result_channels < kLeastChannels || found.channels % kWinogradChannels != 0 ||
      found.result_channels % kWinogradChannels != 0) {
    throw Refusal(text(found.channels, " and ", found.result_channels, " channels, expected multiples of ", kWinogradChannels, " from ", kLeastChannels, " on"));
  }
}

}  // namespace

WinogradConvolution read_winograd(const Graph& graph) {
  if (graph.nodes.empty() || graph.nodes[0].type != HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) throw Refusal("the first node is no convolution");
  const Node& node = graph.nodes[0];
  WinogradConvolution found;
  found.x = node.tensor(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
  found.w = node.tensor(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
  const int y = node.tensor(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
  const Tensor& x = graph.tensor(found.x);
  const Dims& result = graph.tensor(y).dims;
  if (x.dims.size() != kRank) throw Refusal("takes images of two dimensions");
  for (const int t : {found.x, found.w}) {
    if (graph.tensor(t).dtype != HIPDNN_DATA_FLOAT || !graph.tensor(t).has_pointer()) throw Refusal(text("takes float32, not ", describe(graph.tensor(t))));
  }
  found.images = x.dims[0], found.channels = x.dims[1], found.height = x.dims[2], found.width = x.dims[3];
  found.result_channels = result[1], found.result_height = result[2], found.result_width = result[3];
  require_taps(graph, node, found);
  if (x.strides[1] != 1) throw Refusal("takes images with channels last");
  const Dims before = node.ints(HIPDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  found.above = before[0], found.left = before[1];
  if (found.tiles() < kLeastTiles) throw Refusal(text(found.tiles(), " tiles of 2 x 2 results, expected ", kLeastTiles));
  found.graph = with_channels_last(graph);
  found.epilogue = read_row_epilogue(found.graph, 0, y);
  const Tensor& stored = found.graph.tensor(found.epilogue.result);
  if (stored.strides.back() != 1) throw Refusal("takes results with channels last");
  return found;
}

}  // namespace hipdnn_port
