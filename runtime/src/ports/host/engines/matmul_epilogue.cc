#include "matmul_epilogue.h"

#include <algorithm>
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
  are_in_place_ = std::ranges::all_of(tensors_, [](const OperandRows& tensor) { return tensor.rows.step().has_value(); });
}

void MatmulResult::finish(void* const* pointers, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count, float* values,
                          std::int64_t values_row) const {
  const std::int64_t at_once = are_in_place_ ? rows : 1;
  for (std::int64_t r = 0; r < rows; r += at_once) finish_part(pointers, row + r, at_once, first, count, values + r * values_row, values_row);
}

void MatmulResult::finish_part(void* const* pointers, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count, float* values,
                               std::int64_t values_row) const {
  std::array<float, kMostColumns> other;  // NOLINT: filled up to `count` before use, of one row
  const OperandRows& result = tensors_.front();
  void* const stored = result.rows.in_place(pointers[result.pointer], row, first);
  auto operand = tensors_.begin();
  for (const TileStep& step : steps_) {
    TileArgs args{.rows = rows, .cols = count, .dst = values, .dst_row = values_row, .param = step.parameters.data()};
    if (&step == &steps_.back() && stored != nullptr) {
      args.dst = stored;
      args.dst_row = result.rows.step().value_or(0);
    }
    args.src = {values, &step.scalars[0], &step.scalars[1]};
    args.src_row[0] = values_row;
    args.src_col[0] = 1;
    if (step.operand >= 0) {
      ++operand;
      args.src[1] = operand->rows.in_place(pointers[operand->pointer], row, first);
      args.src_row[1] = operand->rows.step().value_or(0);
      if (args.src[1] == nullptr) {
        operand->rows.load(pointers[operand->pointer], row, first, count, other.data());
        args.src[1] = other.data();
      }
      args.src_col[1] = 1;
    }
    step.kernel(args);
  }
  if (!steps_.empty() && stored != nullptr) return;
  for (std::int64_t r = 0; r < rows; ++r) result.rows.store(pointers[result.pointer], row + r, first, count, values + r * values_row);
}

}  // namespace hipdnn_port
