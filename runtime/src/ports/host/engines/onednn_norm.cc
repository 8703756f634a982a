// Layer norm and batch norm inference.
#include <algorithm>
#include <stdexcept>

#include "onednn_builders.h"
#include "onednn_epilogue.h"
#include "onednn_plan.h"

namespace hipdnn_port::onednn {

namespace {

using dnnl::memory;
using dnnl::normalization_flags;

constexpr auto kLnX = HIPDNN_ATTR_OPERATION_LAYERNORM_X_EXT;
constexpr auto kLnY = HIPDNN_ATTR_OPERATION_LAYERNORM_Y_EXT;
constexpr auto kLnScale = HIPDNN_ATTR_OPERATION_LAYERNORM_SCALE_EXT;
constexpr auto kLnBias = HIPDNN_ATTR_OPERATION_LAYERNORM_BIAS_EXT;
constexpr auto kLnEpsilon = HIPDNN_ATTR_OPERATION_LAYERNORM_EPSILON_EXT;

bool is_dense(const Tensor& t) { return same_layout(t.dims, t.strides, plain_strides(t.dims)); }

std::int64_t product(const Dims& dims, std::size_t first, std::size_t last) {
  std::int64_t count = 1;
  for (std::size_t d = first; d < last; ++d) count *= dims[d];
  return count;
}

/// A dense float vector of `count` elements, whatever ones stand around it.
std::optional<std::string> refuses_vector(const Tensor& t, std::int64_t count) {
  if (t.dtype != HIPDNN_DATA_FLOAT) return "tensor " + describe(t) + " must be float32: oneDNN's norms keep scale, bias and statistics so";
  if (t.value || t.element_count() != count || !is_dense(t)) {
    return "tensor " + describe(t) + " must be a dense array of " + std::to_string(count) + " elements";
  }
  return std::nullopt;
}

std::optional<std::string> refuses_scalar(const Tensor& t) {
  if (t.value) return std::nullopt;
  return "tensor " + describe(t) + " must be a compile-time scalar: oneDNN takes epsilon when the plan is made";
}

memory::desc vector_desc(std::int64_t count) { return memory_of({count}, memory::data_type::f32, {1}); }

memory::desc dense_desc(const Tensor& t) { return memory_of(t.dims, data_type_of(t.dtype), plain_strides(t.dims)); }

/// The names batch norm's two forms give their operands.
struct BatchnormNames {
  hipdnnBackendAttributeName_t x, mean, spread, scale, bias, y;
};

constexpr BatchnormNames kWithInverse{HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_X_EXT,
                                      HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_MEAN_EXT,
                                      HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_INV_VARIANCE_EXT,
                                      HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_SCALE_EXT,
                                      HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_BIAS_EXT,
                                      HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_Y_EXT};
constexpr BatchnormNames kWithVariance{HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_X_EXT,
                                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_MEAN_EXT,
                                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_VARIANCE_EXT,
                                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_SCALE_EXT,
                                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_BIAS_EXT,
                                       HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_Y_EXT};
constexpr auto kEpsilon = HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_EPSILON_EXT;

bool has_variance(const Node& node) { return node.type == HIPDNN_BACKEND_OPERATION_BATCHNORM_INFERENCE_VARIANCE_DESCRIPTOR_EXT; }
const BatchnormNames& names_of(const Node& node) { return has_variance(node) ? kWithVariance : kWithInverse; }

/// Variance from 1 / sqrt(variance + epsilon), which holds epsilon already.
int variance_from_inverse(PlanBuilder& builder, int t, const memory::desc& vector) {
  const dnnl::eltwise_forward::primitive_desc desc(cpu_engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::eltwise_pow, vector,
                                                   vector, 1.0F, -2.0F, PlanBuilder::attributes());
  const int slot = builder.scratch(vector);
  builder.run(desc, {{DNNL_ARG_SRC, builder.operand(t, vector)}, {DNNL_ARG_DST, slot}});
  return slot;
}

bool is_relu(const Epilogue& epilogue) {
  return epilogue.steps.size() == 1 && epilogue.steps[0].algorithm == dnnl::algorithm::eltwise_relu && epilogue.steps[0].alpha == 0.0F;
}

}  // namespace

std::optional<std::string> layernorm_refuses(const Graph& graph) {
  const Node& node = graph.nodes[0];
  if (graph.nodes.size() > 1) return "layer norm " + node.name + " is followed by other nodes; oneDNN's takes no epilogue";
  if (node.has_tensor(HIPDNN_ATTR_OPERATION_LAYERNORM_MEAN_EXT) || node.has_tensor(HIPDNN_ATTR_OPERATION_LAYERNORM_INV_VARIANCE_EXT) ||
      node.integer_or(HIPDNN_ATTR_OPERATION_LAYERNORM_FWD_PHASE_EXT, HIPDNN_NORM_FWD_INFERENCE) != HIPDNN_NORM_FWD_INFERENCE) {
    return "layer norm " + node.name + " is in the training phase; inference without statistics is taken";
  }
  const Tensor& x = graph.tensor(node.tensor(kLnX));
  const std::int64_t normalized = node.integer_or(HIPDNN_ATTR_OPERATION_LAYERNORM_NORMALIZED_DIM_COUNT_EXT, 1);
  if (normalized < 1 || normalized > x.rank()) {
    return "layer norm " + node.name + " normalizes " + std::to_string(normalized) + " dimensions of " + describe(x);
  }
  for (const auto name : {kLnX, kLnY}) {
    if (const auto reason = refuses_tensor(graph.tensor(node.tensor(name)))) return reason;
  }
  const std::int64_t count = product(x.dims, static_cast<std::size_t>(x.rank() - normalized), x.dims.size());
  for (const auto name : {kLnScale, kLnBias}) {
    if (!node.has_tensor(name)) continue;
    if (const auto reason = refuses_vector(graph.tensor(node.tensor(name)), count)) return reason;
  }
  return refuses_scalar(graph.tensor(node.tensor(kLnEpsilon)));
}

std::unique_ptr<Plan> build_layernorm(const Graph& graph, const PlanOptions& options) {
  PlanBuilder builder(graph, options);
  const Node& node = graph.nodes[0];
  const int x = node.tensor(kLnX);
  const int y = node.tensor(kLnY);
  const Dims& dims = graph.tensor(x).dims;
  const auto outer = dims.size() - static_cast<std::size_t>(node.integer_or(HIPDNN_ATTR_OPERATION_LAYERNORM_NORMALIZED_DIM_COUNT_EXT, 1));
  const Dims matrix{product(dims, 0, outer), product(dims, outer, dims.size())};
  const memory::desc vector = vector_desc(matrix[1]);
  const auto matrix_desc = [&](int t) { return memory_of(matrix, data_type_of(graph.tensor(t).dtype), plain_strides(matrix)); };

  normalization_flags flags = normalization_flags::none;
  if (node.has_tensor(kLnScale)) flags = flags | normalization_flags::use_scale;
  if (node.has_tensor(kLnBias)) flags = flags | normalization_flags::use_shift;
  const auto epsilon = static_cast<float>(graph.tensor(node.tensor(kLnEpsilon)).scalar());
  const dnnl::layer_normalization_forward::primitive_desc desc(cpu_engine(), dnnl::prop_kind::forward_inference, matrix_desc(x),
                                                               matrix_desc(y), epsilon, flags, PlanBuilder::attributes());
  const int from = builder.loaded(x, memory_of(graph.tensor(x), true), dense_desc(graph.tensor(x)));
  const int to = builder.result(y, memory_of(graph.tensor(y), true), dense_desc(graph.tensor(y)));
  std::vector<std::pair<int, int>> arguments{{DNNL_ARG_SRC, builder.view(from, matrix_desc(x))},
                                             {DNNL_ARG_DST, builder.view(to, matrix_desc(y))}};
  if (node.has_tensor(kLnScale)) arguments.emplace_back(DNNL_ARG_SCALE, builder.operand(node.tensor(kLnScale), vector));
  if (node.has_tensor(kLnBias)) arguments.emplace_back(DNNL_ARG_SHIFT, builder.operand(node.tensor(kLnBias), vector));
  builder.run(desc, std::move(arguments));
  builder.store(y, memory_of(graph.tensor(y), true), to);
  return builder.finish(desc.impl_info_str());
}

std::optional<std::string> batchnorm_refuses(const Graph& graph) {
  const Node& node = graph.nodes[0];
  const BatchnormNames& names = names_of(node);
  const Tensor& x = graph.tensor(node.tensor(names.x));
  if (x.dims.size() < 2 || x.dims.size() > 5) {
    return "batch norm " + node.name + " has operands of rank " + std::to_string(x.dims.size()) + "; taken are 2 to 5";
  }
  for (const auto name : {names.x, names.y}) {
    if (const auto reason = refuses_tensor(graph.tensor(node.tensor(name)))) return reason;
  }
  for (const auto name : {names.mean, names.spread, names.scale, names.bias}) {
    if (const auto reason = refuses_vector(graph.tensor(node.tensor(name)), x.dims[1])) return reason;
  }
  if (has_variance(node)) {
    if (const auto reason = refuses_scalar(graph.tensor(node.tensor(kEpsilon)))) return reason;
  }
  const auto epilogue = read_epilogue(graph, 0, node.tensor(names.y));
  if (const std::string* reason = std::get_if<std::string>(&epilogue)) return *reason;
  const Epilogue& read = std::get<Epilogue>(epilogue);
  if (!read.steps.empty() && !is_relu(read)) return "batch norm " + node.name + " is followed by more than a relu";
  return std::nullopt;
}

std::unique_ptr<Plan> build_batchnorm(const Graph& graph, const PlanOptions& options) {
  PlanBuilder builder(graph, options);
  const Node& node = graph.nodes[0];
  const BatchnormNames& names = names_of(node);
  const int x = node.tensor(names.x);
  const Epilogue epilogue = std::get<Epilogue>(read_epilogue(graph, 0, node.tensor(names.y)));
  const memory::desc x_stored = memory_of(graph.tensor(x));
  const memory::desc y_stored = memory_of(graph.tensor(epilogue.result));
  const memory::desc vector = vector_desc(graph.tensor(x).dims[1]);

  normalization_flags flags = normalization_flags::use_global_stats | normalization_flags::use_scale | normalization_flags::use_shift;
  if (is_relu(epilogue)) flags = flags | normalization_flags::fuse_norm_relu;
  const float epsilon = has_variance(node) ? static_cast<float>(graph.tensor(node.tensor(kEpsilon)).scalar()) : 0.0F;
  // Both sides in the result's type and layout: the kernels have no other form.
  const memory::desc x_computed = memory_of(x_stored.get_dims(), y_stored.get_data_type(), y_stored.get_strides());
  const dnnl::batch_normalization_forward::primitive_desc desc(cpu_engine(), dnnl::prop_kind::forward_inference, x_computed, y_stored,
                                                               epsilon, flags, PlanBuilder::attributes());
  const int variance = has_variance(node) ? builder.operand(node.tensor(names.spread), vector)
                                          : variance_from_inverse(builder, node.tensor(names.spread), vector);
  builder.run(desc, {{DNNL_ARG_SRC, builder.loaded(x, x_stored, x_computed)},
                     {DNNL_ARG_MEAN, builder.operand(node.tensor(names.mean), vector)},
                     {DNNL_ARG_VARIANCE, variance},
                     {DNNL_ARG_SCALE, builder.operand(node.tensor(names.scale), vector)},
                     {DNNL_ARG_SHIFT, builder.operand(node.tensor(names.bias), vector)},
                     {DNNL_ARG_DST, builder.operand(epilogue.result, y_stored)}});
  return builder.finish(desc.impl_info_str() + words(epilogue.steps));
}

}  // namespace hipdnn_port::onednn
