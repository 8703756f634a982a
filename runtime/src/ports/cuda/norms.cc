#include "norms.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "graph_writer.h"

namespace hipdnn_cuda {
namespace {

using hipdnn_port::Graph;
using hipdnn_port::Node;
using hipdnn_port::Tensor;
using Name = hipdnnBackendAttributeName_t;

/// The operands of a batch norm; `deviation` is that of the variance where there is an epsilon.
struct BatchNorm {
  Name x, mean, deviation, scale, bias, y;
  std::optional<Name> epsilon;
};

std::optional<BatchNorm> batch_norm(const Node& node) {
  switch (node.type) {
    case HIPDNN_BACKEND_OPERATION_BATCHNORM_INFERENCE_DESCRIPTOR_EXT:
      return BatchNorm{HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_X_EXT,
                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_MEAN_EXT,
                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_INV_VARIANCE_EXT,
                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_SCALE_EXT,
                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_BIAS_EXT,
                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_Y_EXT,
                       std::nullopt};
    case HIPDNN_BACKEND_OPERATION_BATCHNORM_INFERENCE_VARIANCE_DESCRIPTOR_EXT:
      return BatchNorm{HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_X_EXT,
                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_MEAN_EXT,
                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_VARIANCE_EXT,
                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_SCALE_EXT,
                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_BIAS_EXT,
                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_Y_EXT,
                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_EPSILON_EXT};
    default: return std::nullopt;
  }
}

/// The operands of a layer norm or an RMS norm, and what it answers beside its result.
struct RowNorm {
  Name x, scale, bias, epsilon, y;
  std::array<Name, 2> statistics;
};

std::optional<RowNorm> row_norm(const Node& node) {
  switch (node.type) {
    case HIPDNN_BACKEND_OPERATION_LAYERNORM_DESCRIPTOR_EXT:
      return RowNorm{HIPDNN_ATTR_OPERATION_LAYERNORM_X_EXT,
                     HIPDNN_ATTR_OPERATION_LAYERNORM_SCALE_EXT,
                     HIPDNN_ATTR_OPERATION_LAYERNORM_BIAS_EXT,
                     HIPDNN_ATTR_OPERATION_LAYERNORM_EPSILON_EXT,
                     HIPDNN_ATTR_OPERATION_LAYERNORM_Y_EXT,
                     {HIPDNN_ATTR_OPERATION_LAYERNORM_MEAN_EXT, HIPDNN_ATTR_OPERATION_LAYERNORM_INV_VARIANCE_EXT}};
    case HIPDNN_BACKEND_OPERATION_RMSNORM_DESCRIPTOR_EXT:
      return RowNorm{HIPDNN_ATTR_OPERATION_RMSNORM_X_EXT,
                     HIPDNN_ATTR_OPERATION_RMSNORM_SCALE_EXT,
                     HIPDNN_ATTR_OPERATION_RMSNORM_BIAS_EXT,
                     HIPDNN_ATTR_OPERATION_RMSNORM_EPSILON_EXT,
                     HIPDNN_ATTR_OPERATION_RMSNORM_Y_EXT,
                     {HIPDNN_ATTR_OPERATION_RMSNORM_INV_RMS_EXT, HIPDNN_ATTR_OPERATION_RMSNORM_INV_RMS_EXT}};
    default: return std::nullopt;
  }
}

const Tensor& operand(const Graph& graph, const Node& node, Name name) { return graph.tensor(node.tensor(name)); }

std::int64_t product(Dims::const_iterator first, Dims::const_iterator last) {
  return std::accumulate(first, last, std::int64_t{1}, std::multiplies<>());
}

bool is_packed(const Tensor& tensor) {
  std::int64_t step = 1;
  for (std::size_t d = tensor.dims.size(); d-- > 0;) {
    if (tensor.dims[d] != 1 && tensor.strides[d] != step) return false;
    step *= tensor.dims[d];
  }
  return true;
}

/// Elements of a row: those of the scale.
std::int64_t columns_of(const Graph& graph, const Node& node, const RowNorm& names) {
  const Dims& dims = operand(graph, node, names.scale).dims;
  return product(dims.begin(), dims.end());
}

/// Whether the scale has the last dims of x, and 1 in front of them.
bool spans_last_dims(const Tensor& scale, const Tensor& x) {
  if (scale.dims.size() > x.dims.size()) return false;
  const std::size_t missing = x.dims.size() - scale.dims.size();
  std::size_t d = 0;
  while (d < scale.dims.size() && scale.dims[d] == 1) ++d;
  return std::equal(scale.dims.begin() + static_cast<std::ptrdiff_t>(d), scale.dims.end(), x.dims.begin() + static_cast<std::ptrdiff_t>(missing + d));
}

std::optional<std::string> why_not(const Graph& graph, const Node& node, const RowNorm& names) {
  for (const Name name : names.statistics) {
    if (node.has_tensor(name)) return "statistics of a norm are not translated";
  }
  const Tensor& x = operand(graph, node, names.x);
  if (!spans_last_dims(operand(graph, node, names.scale), x)) return "a norm over other dims than the last ones is not translated";
  for (const Name name : {names.x, names.scale, names.y}) {
    if (!is_packed(operand(graph, node, name))) return "a norm of tensors that are not in C order is not translated";
  }
  if (node.has_tensor(names.bias) && !is_packed(operand(graph, node, names.bias))) return "a bias that is not in C order is not translated";
  if (!operand(graph, node, names.epsilon).value) return "an epsilon that is no baked number is not translated";
  return std::nullopt;
}

void write_out(const Node& node, const BatchNorm& names, const Graph& graph, GraphWriter& made) {
  const Dims full = operand(graph, node, names.x).dims;
  const Dims order = operand(graph, node, names.x).strides;
  const auto apply = [&](hipdnnPointwiseMode_t mode, const std::vector<int>& inputs) {
    const int result = made.intermediate(full);
    // Next to a convolution, cuDNN takes one order only.
    made.tensor(result).strides = hipdnn_port::packed_strides(full, order);
    return made.pointwise(mode, inputs, result);
  };
  int deviation = node.tensor(names.deviation);
  if (names.epsilon) {
    // For each element, not for each channel: cuDNN 9.19 computes garbage where an intermediate broadcasts.
    const int zeros = apply(HIPDNN_POINTWISE_RELU_FWD, {node.tensor(names.x)});
    made.last_node().attributes[HIPDNN_ATTR_POINTWISE_RELU_LOWER_CLIP] = std::vector<double>{0};
    made.last_node().attributes[HIPDNN_ATTR_POINTWISE_RELU_UPPER_CLIP] = std::vector<double>{0};
    const int epsilon = made.number(static_cast<float>(operand(graph, node, *names.epsilon).scalar()), full.size());
    const int variance = apply(HIPDNN_POINTWISE_ADD, {apply(HIPDNN_POINTWISE_ADD, {zeros, deviation}), epsilon});
    deviation = apply(HIPDNN_POINTWISE_RSQRT, {variance});
  }
  const int centred = apply(HIPDNN_POINTWISE_SUB, {node.tensor(names.x), node.tensor(names.mean)});
  const int normal = apply(HIPDNN_POINTWISE_MUL, {centred, deviation});
  const int scaled = apply(HIPDNN_POINTWISE_MUL, {normal, node.tensor(names.scale)});
  made.pointwise(HIPDNN_POINTWISE_ADD, {scaled, node.tensor(names.bias)}, node.tensor(names.y));
}

void see_as(Tensor& tensor, std::int64_t rows, std::int64_t columns) {
  tensor.dims = {rows, columns, 1, 1};
  tensor.strides = {columns, 1, columns, columns};
}

}  // namespace

bool has_batch_norms(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) { return batch_norm(node).has_value(); });
}

Graph with_batch_norms_written_out(const Graph& graph) {
  GraphWriter made(graph);
  for (const Node& node : graph.nodes) {
    if (const auto names = batch_norm(node)) {
      write_out(node, *names, graph, made);
    } else {
      made.append(node);
    }
  }
  return made.take();
}

bool is_row_norm(const Graph& graph) { return graph.nodes.size() == 1 && row_norm(graph.nodes.front()).has_value(); }

Graph with_rows_as_channels(const Graph& graph) {
  const Node& node = graph.nodes.front();
  const RowNorm names = row_norm(node).value();
  const std::int64_t columns = columns_of(graph, node, names);
  const Dims& dims = operand(graph, node, names.x).dims;
  const std::int64_t rows = product(dims.begin(), dims.end()) / columns;
  Graph made = graph;
  const auto tensor = [&](Name name) -> Tensor& { return made.tensors[static_cast<std::size_t>(node.tensor(name))]; };
  see_as(tensor(names.x), rows, columns);
  see_as(tensor(names.y), rows, columns);
  see_as(tensor(names.scale), 1, columns);
  if (node.has_tensor(names.bias)) see_as(tensor(names.bias), 1, columns);
  Tensor& epsilon = tensor(names.epsilon);
  epsilon.dims = epsilon.strides = {1, 1, 1, 1};
  return made;
}

std::optional<std::string> why_not_normalized(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (const auto names = batch_norm(node); names && names->epsilon && !operand(graph, node, *names->epsilon).value) {
      return "an epsilon that is no baked number is not translated";
    }
    if (const auto names = row_norm(node)) {
      if (graph.nodes.size() != 1) return "a norm of rows beside other nodes is not translated";
      return why_not(graph, node, *names);
    }
  }
  return std::nullopt;
}

}  // namespace hipdnn_cuda
