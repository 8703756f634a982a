#include "onednn_pointwise.h"

#include <cmath>
#include <limits>
#include <optional>

#include "onednn_memory.h"

namespace hipdnn_port::onednn {

namespace {

using dnnl::algorithm;

constexpr float kLargest = std::numeric_limits<float>::max();

EpilogueStep linear(float scale, float shift) { return eltwise(algorithm::eltwise_linear, scale, shift); }

bool is_linear(const EpilogueStep& step) { return step.algorithm == algorithm::eltwise_linear; }

/// Clip points may be infinite in the ABI; oneDNN's clip wants finite ones.
float finite(double value) {
  return static_cast<float>(std::fmin(std::fmax(value, -static_cast<double>(kLargest)), static_cast<double>(kLargest)));
}

float real(const Node& node, hipdnnBackendAttributeName_t name, double otherwise) {
  return static_cast<float>(node.real_or(name, otherwise));
}

/// x <= lower: lower + slope (x - lower); x >= upper: upper; else x.
Steps relu_steps(const Node& node) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double lower = node.real_or(HIPDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0.0);
  const double upper = node.real_or(HIPDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, infinity);
  const float slope = real(node, HIPDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0.0);
  const bool has_lower = lower > -static_cast<double>(kLargest);
  const bool has_upper = upper < static_cast<double>(kLargest);
  if (has_lower && slope == 0.0F && (has_upper || lower != 0.0)) {
    return {eltwise(algorithm::eltwise_clip, finite(lower), finite(upper))};
  }
  Steps steps;
  if (has_lower) {
    const float shift = static_cast<float>(lower);
    append_step(steps, linear(1.0F, -shift));
    append_step(steps, eltwise(algorithm::eltwise_relu, slope));
    append_step(steps, linear(1.0F, shift));
  }
  if (has_upper) append_step(steps, eltwise(algorithm::eltwise_clip, -kLargest, finite(upper)));
  return steps;
}

/// Functions of one operand, or nothing where the mode is not one that oneDNN has.
std::optional<Steps> unary_steps(const Node& node, std::int64_t mode) {
  switch (mode) {
    case HIPDNN_POINTWISE_RELU_FWD:
      return relu_steps(node);
    case HIPDNN_POINTWISE_TANH_FWD:
      return Steps{eltwise(algorithm::eltwise_tanh)};
    case HIPDNN_POINTWISE_SIGMOID_FWD:
      return Steps{eltwise(algorithm::eltwise_logistic)};
    case HIPDNN_POINTWISE_GELU_FWD:
      return Steps{eltwise(algorithm::eltwise_gelu_erf)};
    case HIPDNN_POINTWISE_GELU_APPROX_TANH_FWD:
      return Steps{eltwise(algorithm::eltwise_gelu_tanh)};
    case HIPDNN_POINTWISE_SWISH_FWD:
      return Steps{eltwise(algorithm::eltwise_swish, real(node, HIPDNN_ATTR_POINTWISE_SWISH_BETA, 1.0))};
    case HIPDNN_POINTWISE_ELU_FWD:
      return Steps{eltwise(algorithm::eltwise_elu, real(node, HIPDNN_ATTR_POINTWISE_ELU_ALPHA, 1.0))};
    case HIPDNN_POINTWISE_SOFTPLUS_FWD:
      return Steps{eltwise(algorithm::eltwise_soft_relu, real(node, HIPDNN_ATTR_POINTWISE_SOFTPLUS_BETA, 1.0))};
    case HIPDNN_POINTWISE_ABS:
      return Steps{eltwise(algorithm::eltwise_abs)};
    case HIPDNN_POINTWISE_SQRT:
      return Steps{eltwise(algorithm::eltwise_sqrt)};
    case HIPDNN_POINTWISE_EXP:
      return Steps{eltwise(algorithm::eltwise_exp)};
    case HIPDNN_POINTWISE_LOG:
      return Steps{eltwise(algorithm::eltwise_log)};
    case HIPDNN_POINTWISE_NEG:
      return Steps{linear(-1.0F, 0.0F)};
    case HIPDNN_POINTWISE_RECIPROCAL:
      return Steps{eltwise(algorithm::eltwise_pow, 1.0F, -1.0F)};
    case HIPDNN_POINTWISE_ERF:
      return Steps{eltwise(kErf)};
    case HIPDNN_POINTWISE_IDENTITY:
      return Steps{};
    default:
      return std::nullopt;
  }
}

/// v op c, or c op v where `value_first` is false.
std::optional<Steps> scalar_steps(std::int64_t mode, float c, bool value_first) {
  switch (mode) {
    case HIPDNN_POINTWISE_ADD:
      return Steps{linear(1.0F, c)};
    case HIPDNN_POINTWISE_SUB:
      return Steps{value_first ? linear(1.0F, -c) : linear(-1.0F, c)};
    case HIPDNN_POINTWISE_MUL:
      return Steps{linear(c, 0.0F)};
    case HIPDNN_POINTWISE_DIV:
      return Steps{value_first ? linear(1.0F / c, 0.0F) : eltwise(algorithm::eltwise_pow, c, -1.0F)};
    case HIPDNN_POINTWISE_MIN:
      return Steps{eltwise(algorithm::eltwise_clip, -kLargest, finite(static_cast<double>(c)))};
    case HIPDNN_POINTWISE_MAX:
      return Steps{eltwise(algorithm::eltwise_clip, finite(static_cast<double>(c)), kLargest)};
    default:
      return std::nullopt;
  }
}

EpilogueStep binary(algorithm algorithm, int operand) { return {algorithm, 0.0F, 0.0F, operand}; }

/// v op t, or t op v where `value_first` is false.
std::optional<Steps> tensor_steps(std::int64_t mode, int operand, bool value_first) {
  switch (mode) {
    case HIPDNN_POINTWISE_ADD:
      return Steps{binary(algorithm::binary_add, operand)};
    case HIPDNN_POINTWISE_SUB:
      if (value_first) return Steps{binary(algorithm::binary_sub, operand)};
      return Steps{linear(-1.0F, 0.0F), binary(algorithm::binary_add, operand)};
    case HIPDNN_POINTWISE_MUL:
      return Steps{binary(algorithm::binary_mul, operand)};
    case HIPDNN_POINTWISE_DIV:
      if (value_first) return Steps{binary(algorithm::binary_div, operand)};
      return Steps{eltwise(algorithm::eltwise_pow, 1.0F, -1.0F), binary(algorithm::binary_mul, operand)};
    case HIPDNN_POINTWISE_MIN:
      return Steps{binary(algorithm::binary_min, operand)};
    case HIPDNN_POINTWISE_MAX:
      return Steps{binary(algorithm::binary_max, operand)};
    default:
      return std::nullopt;
  }
}

/// v op v.
std::optional<Steps> self_steps(std::int64_t mode) {
  if (mode == HIPDNN_POINTWISE_MUL) return Steps{eltwise(algorithm::eltwise_square)};
  if (mode == HIPDNN_POINTWISE_ADD) return Steps{linear(2.0F, 0.0F)};
  if (mode == HIPDNN_POINTWISE_MIN || mode == HIPDNN_POINTWISE_MAX) return Steps{};
  return std::nullopt;
}

bool close(float a, float b) { return std::fabs(a - b) <= 1e-6F * std::fmax(1.0F, std::fabs(b)); }

/// k where the steps are v -> k v, else nothing.
std::optional<float> as_factor(const Steps& steps) {
  if (steps.empty()) return 1.0F;
  if (steps.size() == 1 && is_linear(steps[0]) && steps[0].beta == 0.0F) return steps[0].alpha;
  return std::nullopt;
}

/// A leading scale-and-shift split off a chain.
struct Affine {
  float scale = 1.0F;
  float shift = 0.0F;
};

Affine take_leading_affine(Steps& steps) {
  if (steps.empty() || !is_linear(steps.front())) return {};
  const Affine affine{steps.front().alpha, steps.front().beta};
  steps.erase(steps.begin());
  return affine;
}

/// x * factor * gate(x) for the gates oneDNN knows.
Steps gated(Steps gate, float factor) {
  const Affine before = take_leading_affine(gate);
  if (gate.empty()) return {};
  const EpilogueStep middle = gate.front();
  gate.erase(gate.begin());
  const bool is_clip = middle.algorithm == algorithm::eltwise_clip && middle.alpha == 0.0F && middle.beta < kLargest;
  Steps steps;
  if (is_clip && middle.beta > 0.0F) {
    steps.push_back(eltwise(algorithm::eltwise_hardswish, before.scale / middle.beta, before.shift / middle.beta));
    factor *= middle.beta;
  } else if (middle.algorithm == algorithm::eltwise_logistic && before.shift == 0.0F) {
    steps.push_back(eltwise(algorithm::eltwise_swish, before.scale));
  } else if (middle.algorithm == algorithm::eltwise_soft_relu && middle.alpha == 1.0F && before.scale == 1.0F && before.shift == 0.0F &&
             !gate.empty() && gate.front().algorithm == algorithm::eltwise_tanh) {
    gate.erase(gate.begin());
    steps.push_back(eltwise(algorithm::eltwise_mish));
  } else if (middle.algorithm == kErf && close(before.scale, std::sqrt(0.5F)) && before.shift == 0.0F && gate.size() == 1 &&
             is_linear(gate.front()) && gate.front().alpha == gate.front().beta) {
    steps.push_back(eltwise(algorithm::eltwise_gelu_erf));
    factor *= 2.0F * gate.front().alpha;
    gate.clear();
  } else {
    return {};
  }
  const std::optional<float> after = as_factor(gate);
  if (!after) return {};
  append_step(steps, linear(factor * *after, 0.0F));
  return steps;
}

std::string mode_refusal(const Node& node, std::int64_t mode, const std::string& form) {
  const std::string name = node.name.empty() ? "pointwise node" : "pointwise node " + node.name;
  return name + ": oneDNN has no post-operation for pointwise mode " + std::to_string(mode) + " " + form;
}

}  // namespace

EpilogueStep eltwise(dnnl::algorithm algorithm, float alpha, float beta) { return {algorithm, alpha, beta, -1}; }

void append_step(Steps& steps, const EpilogueStep& step) {
  EpilogueStep merged = step;
  if (is_linear(merged) && !steps.empty() && is_linear(steps.back())) {
    const EpilogueStep before = steps.back();
    steps.pop_back();
    merged = linear(before.alpha * step.alpha, before.beta * step.alpha + step.beta);
  }
  if (is_linear(merged) && close(merged.alpha, 1.0F) && merged.beta == 0.0F) return;
  steps.push_back(merged);
}

std::variant<Steps, std::string> node_steps(const Graph& graph, const Node& node, int value) {
  const std::int64_t mode = node.integer(HIPDNN_ATTR_POINTWISE_MODE);
  if (node.has_tensor(kIn2)) return mode_refusal(node, mode, "with three operands");
  std::optional<Steps> steps;
  if (!node.has_tensor(kIn1)) {
    steps = unary_steps(node, mode);
    return steps ? std::variant<Steps, std::string>(*steps) : mode_refusal(node, mode, "of one operand");
  }
  const bool value_first = node.tensor(kIn0) == value;
  const int other = node.tensor(value_first ? kIn1 : kIn0);
  if (other == value) {
    steps = self_steps(mode);
  } else if (graph.tensor(other).value) {
    steps = scalar_steps(mode, static_cast<float>(graph.tensor(other).scalar()), value_first);
  } else {
    steps = tensor_steps(mode, other, value_first);
  }
  return steps ? std::variant<Steps, std::string>(*steps) : mode_refusal(node, mode, "of two operands");
}

Steps product_of(const Steps& left, const Steps& right) {
  if (const std::optional<float> factor = as_factor(left)) return gated(right, *factor);
  if (const std::optional<float> factor = as_factor(right)) return gated(left, *factor);
  return {};
}

}  // namespace hipdnn_port::onednn
