#include "block_matmul_graph.h"

#include <algorithm>
#include <vector>

#include "block_weights.h"
#include "frontend/engine.h"
#include "frontend/names.h"
#include "frontend/status.h"
#include "matmul_rows.h"
#include "rowwise_program.h"

namespace hipdnn_port {
namespace {

constexpr auto kQuantize = HIPDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR;
constexpr auto kDequantize = HIPDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR;

/// The only node that writes a tensor, of a type; Refusal where there is none.
const Node& producer(const Graph& graph, int t, hipdnnBackendDescriptorType_t type, const char* what) {
  const int n = graph.producer(t);
  if (n < 0 || graph.nodes[static_cast<std::size_t>(n)].type != type) throw Refusal(text(what, " is not by ", descriptor_name(type)));
  return graph.nodes[static_cast<std::size_t>(n)];
}

/// Refusal where what is read has other dims than what is made of it: the matmul's dims say how much of it is read.
void check_dims(const Graph& graph, int read, int made) {
  if (graph.tensor(read).dims != graph.tensor(made).dims) {
    throw Refusal(text(describe(graph.tensor(read)), " becomes ", describe(graph.tensor(made))));
  }
}

/// Elements of a dequantized tensor's block, which lies along one dim.
std::int64_t block_along(const Graph& graph, const Node& node, std::size_t dims_from_end) {
  const Tensor& wide = graph.tensor(node.tensor(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC));
  const std::vector<std::int64_t>& sizes = node.ints(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE);
  if (node.integer_or(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_NEG_SCALE, 0) != 0) throw Refusal("has negative scales");
  if (sizes.size() != wide.dims.size() || sizes.size() < dims_from_end) throw Refusal(text("blocks ", show(sizes), " of ", describe(wide)));
  const std::size_t along = sizes.size() - dims_from_end;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (d != along && sizes[d] != 1) throw Refusal(text("blocks ", show(sizes), ": expected one dim, the one that is summed over"));
  }
  const std::int64_t block = sizes[along];
  if (block < 8 || block % 8 != 0 || block > kLargestBlock) throw Refusal(text("blocks of ", block, ", expected a multiple of 8"));
  return block;
}

void read_weights(const Graph& graph, BlockMatmul& found, int b) {
  const Node& node = producer(graph, b, kDequantize, "the right operand");
  found.numbers = node.tensor(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC);
  found.scales = node.tensor(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC);
  check_dims(graph, found.numbers, b);
  found.block = block_along(graph, node, 2);
  const Tensor& numbers = graph.tensor(found.numbers);
  const Tensor& scales = graph.tensor(found.scales);
  if (numbers.dtype != HIPDNN_DATA_INT4 && numbers.dtype != HIPDNN_DATA_INT8) throw Refusal(text("weights are ", describe(numbers)));
  if (!is_float_type(scales.dtype)) throw Refusal(text("scales are ", describe(scales)));
  if (!numbers.has_pointer() || !scales.has_pointer()) throw Refusal("weights or scales are computed in the graph");
  if (graph.tensor(b).has_pointer()) throw Refusal("stores the dequantized weights");
  const std::int64_t rows = numbers.dims[numbers.dims.size() - 2];
  std::vector<std::int64_t> expected = numbers.dims;
  expected[expected.size() - 2] = (rows + found.block - 1) / found.block;
  if (scales.dims != expected) throw Refusal(text(describe(scales), " for blocks of ", found.block, " of ", describe(numbers)));
  if (std::any_of(numbers.dims.begin(), numbers.dims.end() - 2, [](std::int64_t size) { return size != 1; })) throw Refusal("has batches of weights");
}

void read_left(const Graph& graph, BlockMatmul& found, int a) {
  found.a = a;
  if (graph.producer(a) >= 0) {
    const Node& dequantize = producer(graph, a, kDequantize, "the left operand");
    const int codes = dequantize.tensor(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC);
    const Node& quantize = producer(graph, codes, kQuantize, "the left operand's numbers");
    const std::int64_t axis = quantize.integer_or(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_AXIS_EXT, -1);
    const int scale = quantize.tensor(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC);
    const bool is_same = scale == dequantize.tensor(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC);
    const bool is_known = graph.tensor(codes).dtype == HIPDNN_DATA_INT8 && graph.tensor(scale).dtype == HIPDNN_DATA_FLOAT;
    if (!is_same || !is_known || axis != graph.tensor(codes).rank() - 1) {
      throw Refusal("the left operand is not quantized to 8 bits along what is summed over");
    }
    if (quantize.integer_or(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_TRANSPOSE_EXT, 0) != 0) throw Refusal("quantizes transposed");
    found.a_block = block_along(graph, dequantize, 1);
    const std::vector<std::int64_t>& quantized = quantize.ints(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE);
    if (found.a_block != found.block || quantized != std::vector{found.a_block}) {
      throw Refusal(text("blocks of ", show(quantized), " and ", found.a_block, " times blocks of ", found.block));
    }
    const auto is_stored = [&](int t) { return graph.tensor(t).has_pointer(); };
    if (is_stored(codes) || is_stored(scale) || is_stored(a)) throw Refusal("stores what it quantizes");
    found.a = quantize.tensor(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC);
    check_dims(graph, found.a, a);
  }
  const Tensor& left = graph.tensor(found.a);
  if (!left.has_pointer() || !is_float_type(left.dtype)) throw Refusal(text("the left operand is ", describe(left)));
}

}  // namespace

BlockMatmul read_block_matmul(const Graph& graph) {
  const auto node = std::ranges::find(graph.nodes, HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, &Node::type);
  if (node == graph.nodes.end()) throw Refusal("has no matmul");
  BlockMatmul found;
  read_weights(graph, found, node->tensor(HIPDNN_ATTR_OPERATION_MATMUL_BDESC));
  read_left(graph, found, node->tensor(HIPDNN_ATTR_OPERATION_MATMUL_ADESC));
  const auto before = static_cast<std::size_t>(node - graph.nodes.begin());
  if (before != (found.a_block == 0 ? 1U : 3U)) throw Refusal("has nodes beside the matmul's operands");
  found.epilogue = read_matmul_epilogue(graph, before);
  return found;
}

}  // namespace hipdnn_port
