#include "norm_cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "norms.h"

namespace {

using hipdnn_port::Graph;
using hipdnn_port::Node;
using hipdnn_port::Tensor;
using Dims = std::vector<std::int64_t>;
using Name = hipdnnBackendAttributeName_t;

constexpr double epsilon = 1e-3;

int add_tensor(Graph& graph, const Dims& dims, std::optional<float> value = std::nullopt) {
  Tensor made;
  made.uid = static_cast<std::int64_t>(graph.tensors.size()) + 10;
  made.dims = dims;
  made.strides.assign(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 1;) made.strides[d - 1] = made.strides[d] * dims[d];
  if (value) {
    made.value.emplace(sizeof *value);
    std::memcpy(made.value->data(), &*value, sizeof *value);
  }
  graph.tensors.push_back(made);
  return static_cast<int>(graph.tensors.size()) - 1;
}

Graph batch_norm_then_relu() {
  Graph graph;
  const Dims full{2, 3, 4, 5}, channels{1, 3, 1, 1};
  Node norm{HIPDNN_BACKEND_OPERATION_BATCHNORM_INFERENCE_VARIANCE_DESCRIPTOR_EXT, "", {}, {}};
  norm.tensors = {{HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_X_EXT, {add_tensor(graph, full)}},
                  {HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_MEAN_EXT, {add_tensor(graph, channels)}},
                  {HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_VARIANCE_EXT, {add_tensor(graph, channels)}},
                  {HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_SCALE_EXT, {add_tensor(graph, channels)}},
                  {HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_BIAS_EXT, {add_tensor(graph, channels)}},
                  {HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_EPSILON_EXT, {add_tensor(graph, {1}, static_cast<float>(epsilon))}},
                  {HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_Y_EXT, {add_tensor(graph, full)}}};
  graph.tensors.back().is_virtual = true;
  const int between = static_cast<int>(graph.tensors.size()) - 1;
  graph.nodes.push_back(norm);
  Node relu{HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "", {}, {}};
  relu.tensors = {{HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, {between}}, {HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT, {add_tensor(graph, full)}}};
  relu.attributes = {{HIPDNN_ATTR_POINTWISE_MODE, Dims{HIPDNN_POINTWISE_RELU_FWD}}};
  graph.nodes.push_back(relu);
  return graph;
}

/// What the pointwise nodes compute for one element, from one number for each tensor that is given.
double evaluate(const Graph& graph, std::map<int, double> values) {
  double last = 0;
  const auto value = [&](int tensor) {
    const Tensor& described = graph.tensors[static_cast<std::size_t>(tensor)];
    return described.value ? described.scalar() : values.at(tensor);
  };
  for (const Node& node : graph.nodes) {
    check::equal(node.type, HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    const double a = value(node.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT));
    const double b = node.has_tensor(HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT) ? value(node.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT)) : 0;
    switch (node.integer(HIPDNN_ATTR_POINTWISE_MODE)) {
      case HIPDNN_POINTWISE_ADD: last = a + b; break;
      case HIPDNN_POINTWISE_SUB: last = a - b; break;
      case HIPDNN_POINTWISE_MUL: last = a * b; break;
      case HIPDNN_POINTWISE_RSQRT: last = 1 / std::sqrt(a); break;
      case HIPDNN_POINTWISE_RELU_FWD:
        last = std::min(std::max(a, 0.0), node.real_or(HIPDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, std::numeric_limits<double>::infinity()));
        break;
      default: check::that(false, "another function");
    }
    values[node.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT)] = last;
  }
  return last;
}

void test_batch_norms_are_pointwise_operations() {
  const Graph graph = batch_norm_then_relu();
  check::that(!hipdnn_cuda::why_not_normalized(graph).has_value(), "it is refused");
  check::that(hipdnn_cuda::has_batch_norms(graph), "a batch norm");
  const Graph written = hipdnn_cuda::with_batch_norms_written_out(graph);
  check::that(!hipdnn_cuda::has_batch_norms(written), "one is left");
  const double got = evaluate(written, {{0, 2.5}, {1, 0.5}, {2, 4.0}, {3, 3.0}, {4, -0.25}});
  check::near(got, (2.5 - 0.5) / std::sqrt(4.0 + epsilon) * 3.0 - 0.25, 1e-6);
  for (const Node& node : written.nodes) {
    const Tensor& out = written.tensors[static_cast<std::size_t>(node.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT))];
    check::that(out.is_virtual || &node == &written.nodes.back(), "an intermediate is stored");
    check::equal(out.dims, Dims({2, 3, 4, 5}));
  }
}

Tensor& operand(Graph& graph, hipdnnBackendAttributeName_t name) {
  return graph.tensors[static_cast<std::size_t>(graph.nodes.front().tensor(name))];
}

void test_intermediates_of_batch_norms_lie_as_their_operand() {
  Graph graph = batch_norm_then_relu();
  operand(graph, HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_X_EXT).strides = {60, 1, 15, 3};
  const Graph written = hipdnn_cuda::with_batch_norms_written_out(graph);
  int full = 0;
  for (std::size_t t = graph.tensors.size(); t < written.tensors.size(); ++t) {
    const Tensor& made = written.tensors[t];
    if (made.dims != Dims({2, 3, 4, 5})) continue;
    ++full;
    check::equal(made.strides, Dims({60, 1, 15, 3}));
  }
  check::equal(full, 7);
}

Graph layer_norm(const Dims& x, const Dims& scale) {
  Graph graph;
  Node norm{HIPDNN_BACKEND_OPERATION_LAYERNORM_DESCRIPTOR_EXT, "", {}, {}};
  norm.tensors = {{HIPDNN_ATTR_OPERATION_LAYERNORM_X_EXT, {add_tensor(graph, x)}},
                  {HIPDNN_ATTR_OPERATION_LAYERNORM_SCALE_EXT, {add_tensor(graph, scale)}},
                  {HIPDNN_ATTR_OPERATION_LAYERNORM_BIAS_EXT, {add_tensor(graph, scale)}},
                  {HIPDNN_ATTR_OPERATION_LAYERNORM_EPSILON_EXT, {add_tensor(graph, {1}, 1e-5F)}},
                  {HIPDNN_ATTR_OPERATION_LAYERNORM_Y_EXT, {add_tensor(graph, x)}}};
  graph.nodes.push_back(norm);
  return graph;
}

void test_rows_become_channels() {
  const Graph made = hipdnn_cuda::with_rows_as_channels(layer_norm({2, 3, 4, 8}, {1, 1, 4, 8}));
  for (const int full : {0, 4}) {
    check::equal(made.tensors[static_cast<std::size_t>(full)].dims, Dims({6, 32, 1, 1}));
    check::equal(made.tensors[static_cast<std::size_t>(full)].strides, Dims({32, 1, 32, 32}));
  }
  for (const int vector : {1, 2}) check::equal(made.tensors[static_cast<std::size_t>(vector)].dims, Dims({1, 32, 1, 1}));
  check::equal(made.tensors[3].dims, Dims({1, 1, 1, 1}));
}

std::string norm_refusal(const Graph& graph) {
  const auto reason = hipdnn_cuda::why_not_normalized(graph);
  check::that(reason.has_value(), "it is taken");
  return reason.value_or("");
}

void test_what_is_not_translated() {
  check::that(!hipdnn_cuda::why_not_normalized(layer_norm({6, 8}, {1, 8})).has_value(), "a plain one is refused");
  check::contains(norm_refusal(layer_norm({6, 8}, {6, 1})), "other dims than the last");
  Graph strided = layer_norm({6, 8}, {1, 8});
  strided.tensors[0].strides = {16, 1};
  check::contains(norm_refusal(strided), "C order");
  Graph open = layer_norm({6, 8}, {1, 8});
  open.tensors[3].value.reset();
  check::contains(norm_refusal(open), "epsilon");
  Graph trained = layer_norm({6, 8}, {1, 8});
  trained.nodes[0].tensors[HIPDNN_ATTR_OPERATION_LAYERNORM_MEAN_EXT] = {add_tensor(trained, {6, 1})};
  check::contains(norm_refusal(trained), "statistics");
  Graph batch = batch_norm_then_relu();
  batch.tensors[5].value.reset();
  check::contains(norm_refusal(batch), "epsilon");
}

}  // namespace

void add_norm_cases(check::Suite& suite) {
  suite.add("norms: batch norms are pointwise operations", test_batch_norms_are_pointwise_operations);
  suite.add("norms: intermediates of batch norms lie as their operand", test_intermediates_of_batch_norms_lie_as_their_operand);
  suite.add("norms: rows become channels", test_rows_become_channels);
  suite.add("norms: what is not translated", test_what_is_not_translated);
}
