#include "matmul_epilogue.h"

#include <limits>
#include <optional>
#include <string>
#include <variant>

#include "frontend/status.h"
#include "onednn_epilogue.h"
#include "rowwise_program.h"
#include "widened_plan.h"

namespace hipdnn_port {
namespace {

struct TileFunction {
  TileOp op;
  std::array<double, 3> parameters{};
  std::array<float, 2> scalars{};
};

std::optional<TileFunction> function_of(const onednn::EpilogueStep& step) {
  using enum dnnl::algorithm;
  switch (step.algorithm) {
    case binary_add: return TileFunction{TileOp::add};
    case binary_sub: return TileFunction{TileOp::sub};
    case binary_mul: return TileFunction{TileOp::mul};
    case binary_div: return TileFunction{TileOp::div};
    case binary_min: return TileFunction{TileOp::min};
    case binary_max: return TileFunction{TileOp::max};
    case eltwise_linear: return TileFunction{TileOp::mul_add, {}, {step.alpha, step.beta}};
    case eltwise_relu: return TileFunction{TileOp::relu, {0.0, std::numeric_limits<double>::infinity(), step.alpha}};
    case eltwise_clip: return TileFunction{TileOp::relu, {step.alpha, step.beta, 0.0}};
    case eltwise_swish: return TileFunction{TileOp::swish, {step.alpha}};
    case eltwise_elu: return TileFunction{TileOp::elu, {step.alpha}};
    case eltwise_logistic: return TileFunction{TileOp::sigmoid};
    case eltwise_gelu_erf: return TileFunction{TileOp::gelu};
    case eltwise_gelu_tanh: return TileFunction{TileOp::gelu_tanh};
    case eltwise_tanh: return TileFunction{TileOp::tanh};
    default: return std::nullopt;
  }
}

}  // namespace

MatmulEpilogue read_matmul_epilogue(const Graph& graph, std::size_t matmul) {
  return read_row_epilogue(graph, matmul, graph.nodes[matmul].tensor(HIPDNN_ATTR_OPERATION_MATMUL_CDESC));
}

MatmulEpilogue read_row_epilogue(const Graph& graph, std::size_t node, int value) {
  Graph rest = widened(graph);  // steps are computed in float32, whatever oneDNN has
  rest.nodes.erase(rest.nodes.begin(), rest.nodes.begin() + static_cast<std::ptrdiff_t>(node));
  const auto read = onednn::read_epilogue(rest, 0, value);
  if (const auto* reason = std::get_if<std::string>(&read)) throw Refusal(*reason);
  const auto& [steps, result] = std::get<onednn::Epilogue>(read);
  if (!is_float_type(graph.tensor(result).dtype)) throw Refusal(text("the result is ", describe(graph.tensor(result))));
  MatmulEpilogue epilogue{.steps = {}, .result = result};
  for (const onednn::EpilogueStep& step : steps) {
    const auto function = function_of(step);
    if (!function) throw Refusal("has an epilogue that is none of sums, products, minima, maxima, quotients and common activations");
    if (step.is_binary() && (!graph.tensor(step.operand).has_pointer() || !is_float_type(graph.tensor(step.operand).dtype))) {
      throw Refusal(text("the epilogue reads ", describe(graph.tensor(step.operand))));
    }
    epilogue.steps.push_back({find_elementwise(function->op, Reg::f32, Reg::f32), function->parameters, function->scalars, step.operand});
  }
  return epilogue;
}

MatmulResult::MatmulResult(const Graph& graph, const MatmulEpilogue& epilogue, const std::vector<std::int64_t>& uids) : steps_(epilogue.steps) {
  const std::vector<std::int64_t>& dims = graph.tensor(epilogue.result).dims;
  const auto add = [&](int t) { tensors_.push_back({Rows(graph.tensor(t), dims), pointer_of(graph, t, uids)}); };
  add(epilogue.result);
  for (const TileStep& step : steps_) {
    if (step.operand >= 0) add(step.operand);
  }
}

void MatmulResult::finish(void* const* pointers, std::int64_t row, std::int64_t first, std::int64_t count, float* values) const {
  std::array<float, kMostColumns> other;  // NOLINT: filled up to `count` before use
  const OperandRows& result = tensors_.front();
  void* const stored = result.rows.in_place(pointers[result.pointer], row, first);
  auto operand = tensors_.begin();
  for (const TileStep& step : steps_) {
    const bool is_last = &step == &steps_.back();
    TileArgs args{.rows = 1, .cols = count, .dst = is_last && stored != nullptr ? stored : values, .param = step.parameters.data()};
    args.src = {values, &step.scalars[0], &step.scalars[1]};
    args.src_col[0] = 1;
    if (step.operand >= 0) {
      ++operand;
      args.src[1] = operand->rows.in_place(pointers[operand->pointer], row, first);
      if (args.src[1] == nullptr) {
        operand->rows.load(pointers[operand->pointer], row, first, count, other.data());
        args.src[1] = other.data();
      }
      args.src_col[1] = 1;
    }
    step.kernel(args);
  }
  if (steps_.empty() || stored == nullptr) result.rows.store(pointers[result.pointer], row, first, count, values);
}

}  // namespace hipdnn_port
