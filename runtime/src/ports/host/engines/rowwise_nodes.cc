// From graph nodes to typed steps: what each kind of node computes.
#include <algorithm>
#include <bit>
#include <limits>

#include "frontend/names.h"
#include "frontend/status.h"
#include "rowwise_lowering.h"

namespace hipdnn_port {
namespace {

hipdnnDataType_t data_type(std::int64_t value) { return static_cast<hipdnnDataType_t>(value); }

std::string axes_text(AxisSet axes) {
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; axes != 0; ++i, axes >>= 1) {
    if ((axes & 1) != 0) list.push_back(i);
  }
  return show(list);
}

/// How a reduction operator becomes a fold and what follows it.
struct ReductionForm {
  Fold fold;
  Prepare prepare = Prepare::none;
  bool divides = false;
  bool roots = false;
};

std::optional<ReductionForm> reduction_form(std::int64_t op) {
  switch (op) {
    case HIPDNN_REDUCE_TENSOR_ADD: return ReductionForm{Fold::add};
    case HIPDNN_REDUCE_TENSOR_MUL: return ReductionForm{Fold::mul};
    case HIPDNN_REDUCE_TENSOR_MIN: return ReductionForm{Fold::min};
    case HIPDNN_REDUCE_TENSOR_MAX: return ReductionForm{Fold::max};
    case HIPDNN_REDUCE_TENSOR_AMAX: return ReductionForm{Fold::max, Prepare::abs};
    case HIPDNN_REDUCE_TENSOR_AVG: return ReductionForm{Fold::add, Prepare::none, true};
    case HIPDNN_REDUCE_TENSOR_NORM1: return ReductionForm{Fold::add, Prepare::abs};
    case HIPDNN_REDUCE_TENSOR_NORM2: return ReductionForm{Fold::add, Prepare::square, false, true};
    case HIPDNN_REDUCE_TENSOR_MUL_NO_ZEROS: return ReductionForm{Fold::mul, Prepare::one_if_zero};
    default: return std::nullopt;
  }
}

}  // namespace

void RowLowering::check_math(hipdnnDataType_t math, bool needs_real, const char* what) const {
  if (is_real(math) || math == HIPDNN_DATA_BOOLEAN) return;
  if (!is_whole(math)) refuse(text("math type ", data_type_name(math), " is not taken"));
  if (needs_real) refuse(text(what, " has no integer form; set a floating math type instead of ", data_type_name(math)));
}

Reg RowLowering::compute_reg(const Node& node, const PointwiseMode& mode, std::span<const int> inputs, int output) const {
  const hipdnnDataType_t math = data_type(node.integer_or(HIPDNN_ATTR_POINTWISE_MATH_PREC, HIPDNN_DATA_FLOAT));
  const hipdnnDataType_t out = tensor(output).dtype;
  const auto any = [&](auto&& predicate) { return std::any_of(inputs.begin(), inputs.end(), [&](int t) { return predicate(tensor(t).dtype); }); };
  const bool real_input = any(is_real);
  const bool integer_input = any(is_whole);
  const bool compares = mode.kind == ModeClass::compare;
  const auto is_double = [](hipdnnDataType_t type) { return type == HIPDNN_DATA_DOUBLE; };
  const bool wide = math == HIPDNN_DATA_DOUBLE || any(is_double) || (!compares && is_double(out));
  check_math(math, mode.kind == ModeClass::real && (real_input || is_real(out)), mode.name);
  if (mode.kind == ModeClass::real) return wide ? Reg::f64 : Reg::f32;
  if (compares) return real_input ? (wide || integer_input ? Reg::f64 : Reg::f32) : integer_input ? Reg::i64 : Reg::boolean;
  if (real_input || is_real(out)) return wide ? Reg::f64 : Reg::f32;
  return integer_input || is_whole(out) ? Reg::i64 : Reg::f32;
}

std::array<double, 3> RowLowering::mode_parameters(const Node& node, TileOp op) const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case TileOp::relu:
      return {node.real_or(HIPDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0.0), node.real_or(HIPDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, infinity),
              node.real_or(HIPDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0.0)};
    case TileOp::swish: return {node.real_or(HIPDNN_ATTR_POINTWISE_SWISH_BETA, 1.0)};
    case TileOp::elu: return {node.real_or(HIPDNN_ATTR_POINTWISE_ELU_ALPHA, 1.0)};
    case TileOp::softplus: return {node.real_or(HIPDNN_ATTR_POINTWISE_SOFTPLUS_BETA, 1.0)};
    default: return {};
  }
}

void RowLowering::lower_pointwise(const Node& node) {
  const auto number = node.integer(HIPDNN_ATTR_POINTWISE_MODE);
  const PointwiseMode* mode = find_pointwise_mode(static_cast<hipdnnPointwiseMode_t>(number));
  if (mode == nullptr) refuse(text("pointwise mode ", number, " is a backward or unknown mode; forward modes are taken"));
  constexpr std::array names{HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT,
                             HIPDNN_ATTR_OPERATION_POINTWISE_IN_2_EXT};
  std::vector<int> inputs;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool wanted = static_cast<int>(i) < mode->operands;
    if (node.has_tensor(names[i]) != wanted) refuse(text(mode->name, " takes ", mode->operands, " operand(s); IN_", i, wanted ? " is missing" : " is set"));
    if (wanted) inputs.push_back(node.tensor(names[i]));
  }
  if (mode->kind == ModeClass::index) return lower_index(node);
  if (mode->kind == ModeClass::identity) return lower_identity(node, *mode);
  const int output = node.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT);
  if (mode->kind == ModeClass::logical) {
    std::vector<int> args;
    for (int t : inputs) args.push_back(as_mask(input(t, value(value_of_[static_cast<std::size_t>(t)]).reg)));
    return define(output, add_step(mode->op, Reg::boolean, std::move(args)), false);
  }
  TileOp op = mode->op;
  const std::array<double, 3> param = mode_parameters(node, op);
  Reg reg = compute_reg(node, *mode, inputs, output);
  if (reg == Reg::i64 && op == TileOp::relu && param[2] != 0.0) reg = Reg::f64;
  if (reg == Reg::i64 && op == TileOp::div) op = TileOp::wrapping_div;
  const bool all_whole = std::all_of(inputs.begin(), inputs.end(), [&](int t) { return is_whole(tensor(t).dtype); });
  if (all_whole && (op == TileOp::ceil || op == TileOp::floor)) {
    op = TileOp::copy;
    reg = Reg::i64;
  }
  std::vector<int> args;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool predicate = mode->kind == ModeClass::select && i == 2;
    args.push_back(predicate ? as_mask(value_of_[static_cast<std::size_t>(inputs[i])]) : input(inputs[i], reg));
  }
  if (mode->kind == ModeClass::select) std::rotate(args.begin(), args.begin() + 2, args.end());  // the predicate comes first in a step
  define(output, add_step(op, mode->kind == ModeClass::compare ? Reg::boolean : reg, std::move(args), param), false);
}

void RowLowering::lower_index(const Node& node) {
  const std::int64_t axis = node.integer_or(HIPDNN_ATTR_POINTWISE_AXIS, -1);
  const int output = node.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT);
  const std::int64_t rank = tensor(output).rank();
  if (axis < 0 || axis >= rank) refuse(text("GEN_INDEX: AXIS is ", axis, ", expected 0 to ", rank - 1));
  RowValue v{RowValue::Source::axis_index, Reg::i64};
  const bool single = tensor(output).element_count() == 1;
  v.axis = single ? 0 : static_cast<int>(axis_of(tensor(output), static_cast<std::size_t>(axis)));
  v.axes = tensor_axes(tensor(output)) & (AxisSet{1} << v.axis);
  const int index = v.axes == 0 ? add_constant(0, Reg::i64) : program_.add(v);
  define(output, index, false);
}

void RowLowering::lower_identity(const Node& node, const PointwiseMode& mode) {
  const int source = node.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT);
  const int output = node.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT);
  check_math(data_type(node.integer_or(HIPDNN_ATTR_POINTWISE_MATH_PREC, HIPDNN_DATA_FLOAT)), false, mode.name);
  const int index = value_of_[static_cast<std::size_t>(source)];
  if (index < 0) refuse("IN_0 is read before it is written; nodes must be in topological order");
  define(output, index, true);
}

AxisSet RowLowering::axes_where_unequal(int x, int y) const {
  const AxisSet from = tensor_axes(tensor(x));
  const AxisSet to = tensor_axes(tensor(y));
  if ((to & ~from) != 0) refuse(text("result dims ", show(tensor(y).dims), " exceed operand dims ", show(tensor(x).dims)));
  return from & ~to;
}

void RowLowering::reduce_over(AxisSet axes) {
  const bool earlier = program_.fold_count() > 0;
  if (earlier && axes != program_.reduced) {
    refuse(text("reduces axes ", axes_text(axes), ", an earlier node axes ", axes_text(program_.reduced), "; one set per graph"));
  }
  program_.reduced = axes;
}

double RowLowering::reduced_count() const {
  double count = 1;
  for (std::size_t i = 0; i < program_.extents.size(); ++i) {
    if ((program_.reduced >> i & 1) != 0) count *= static_cast<double>(program_.extents[i]);
  }
  return count;
}

void RowLowering::lower_reduction(const Node& node) {
  const int x = node.tensor(HIPDNN_ATTR_OPERATION_REDUCTION_XDESC);
  const int y = node.tensor(HIPDNN_ATTR_OPERATION_REDUCTION_YDESC);
  const std::int64_t op = node.integer(HIPDNN_ATTR_REDUCTION_OPERATOR);
  const std::optional<ReductionForm> form = reduction_form(op);
  if (!form) refuse(text("reduction operator ", op, " is unknown"));
  const hipdnnDataType_t math = data_type(node.integer_or(HIPDNN_ATTR_REDUCTION_COMP_TYPE, HIPDNN_DATA_FLOAT));
  const hipdnnDataType_t in = tensor(x).dtype;
  const hipdnnDataType_t out = tensor(y).dtype;
  check_math(math, is_real(in), "a reduction of floating values");
  const bool wide = math == HIPDNN_DATA_DOUBLE || in == HIPDNN_DATA_DOUBLE || out == HIPDNN_DATA_DOUBLE;
  Reg reg = wide ? Reg::f64 : Reg::f32;
  if (!is_real(in)) reg = is_real(out) || form->roots ? Reg::f64 : Reg::i64;
  reduce_over(axes_where_unequal(x, y));
  int result = add_fold(form->fold, form->prepare, input(x, reg));
  if (form->divides) result = add_step(TileOp::div, reg, {result, add_constant(reduced_count(), reg)});
  if (form->roots) result = add_step(TileOp::sqrt, reg, {result});
  define(y, result, false);
}

AxisSet RowLowering::trailing(std::int64_t count) const {
  const auto rank = static_cast<std::int64_t>(program_.extents.size());
  AxisSet axes = 0;
  for (std::int64_t i = std::max<std::int64_t>(0, rank - count); i < rank; ++i) {
    if (program_.extents[static_cast<std::size_t>(i)] > 1) axes |= AxisSet{1} << i;
  }
  return axes;
}

int RowLowering::normalized(int centred, int inverse, const Node& node, hipdnnBackendAttributeName_t scale,
                            hipdnnBackendAttributeName_t bias, Reg reg) {
  int result = add_step(TileOp::mul, reg, {centred, inverse});
  result = add_step(TileOp::mul, reg, {result, input(node.tensor(scale), reg)});
  return node.has_tensor(bias) ? add_step(TileOp::add, reg, {result, input(node.tensor(bias), reg)}) : result;
}

void RowLowering::lower_layernorm(const Node& node) {
  const int x = node.tensor(HIPDNN_ATTR_OPERATION_LAYERNORM_X_EXT);
  const int scale = node.tensor(HIPDNN_ATTR_OPERATION_LAYERNORM_SCALE_EXT);
  const hipdnnDataType_t math = data_type(node.integer_or(HIPDNN_ATTR_LAYERNORM_COMP_TYPE_EXT, HIPDNN_DATA_FLOAT));
  check_math(math, true, "layer norm");
  const Reg reg = math == HIPDNN_DATA_DOUBLE || tensor(x).dtype == HIPDNN_DATA_DOUBLE ? Reg::f64 : Reg::f32;
  const std::int64_t count = node.integer_or(HIPDNN_ATTR_OPERATION_LAYERNORM_NORMALIZED_DIM_COUNT_EXT, 0);
  reduce_over(count > 0 ? trailing(count) : tensor_axes(tensor(scale)));
  const int elements = add_constant(reduced_count(), reg);
  const int from = input(x, reg);
  const int mean = add_step(TileOp::div, reg, {add_fold(Fold::add, Prepare::none, from), elements});
  const int centred = add_step(TileOp::sub, reg, {from, mean});
  const int variance = add_step(TileOp::div, reg, {add_fold(Fold::add, Prepare::square, centred), elements});
  const int epsilon = input(node.tensor(HIPDNN_ATTR_OPERATION_LAYERNORM_EPSILON_EXT), reg);
  const int inverse = add_step(TileOp::rsqrt, reg, {add_step(TileOp::add, reg, {variance, epsilon})});
  if (node.has_tensor(HIPDNN_ATTR_OPERATION_LAYERNORM_MEAN_EXT)) define(node.tensor(HIPDNN_ATTR_OPERATION_LAYERNORM_MEAN_EXT), mean, false);
  if (node.has_tensor(HIPDNN_ATTR_OPERATION_LAYERNORM_INV_VARIANCE_EXT)) {
    define(node.tensor(HIPDNN_ATTR_OPERATION_LAYERNORM_INV_VARIANCE_EXT), inverse, false);
  }
  define(node.tensor(HIPDNN_ATTR_OPERATION_LAYERNORM_Y_EXT),
         normalized(centred, inverse, node, HIPDNN_ATTR_OPERATION_LAYERNORM_SCALE_EXT, HIPDNN_ATTR_OPERATION_LAYERNORM_BIAS_EXT, reg), false);
}

void RowLowering::lower_rmsnorm(const Node& node) {
  const int x = node.tensor(HIPDNN_ATTR_OPERATION_RMSNORM_X_EXT);
  const int scale = node.tensor(HIPDNN_ATTR_OPERATION_RMSNORM_SCALE_EXT);
  const hipdnnDataType_t math = data_type(node.integer_or(HIPDNN_ATTR_RMSNORM_COMP_TYPE_EXT, HIPDNN_DATA_FLOAT));
  check_math(math, true, "RMS norm");
  const Reg reg = math == HIPDNN_DATA_DOUBLE || tensor(x).dtype == HIPDNN_DATA_DOUBLE ? Reg::f64 : Reg::f32;
  // The normalized axes are those the scale spans.
  reduce_over(tensor_axes(tensor(scale)));
  const int from = input(x, reg);
  const int mean_square = add_step(TileOp::div, reg, {add_fold(Fold::add, Prepare::square, from), add_constant(reduced_count(), reg)});
  const int epsilon = input(node.tensor(HIPDNN_ATTR_OPERATION_RMSNORM_EPSILON_EXT), reg);
  const int inverse = add_step(TileOp::rsqrt, reg, {add_step(TileOp::add, reg, {mean_square, epsilon})});
  if (node.has_tensor(HIPDNN_ATTR_OPERATION_RMSNORM_INV_RMS_EXT)) define(node.tensor(HIPDNN_ATTR_OPERATION_RMSNORM_INV_RMS_EXT), inverse, false);
  define(node.tensor(HIPDNN_ATTR_OPERATION_RMSNORM_Y_EXT),
         normalized(from, inverse, node, HIPDNN_ATTR_OPERATION_RMSNORM_SCALE_EXT, HIPDNN_ATTR_OPERATION_RMSNORM_BIAS_EXT, reg), false);
}

void RowLowering::lower_running(const Node& node, hipdnnBackendAttributeName_t before, hipdnnBackendAttributeName_t after, int of_batch,
                                Reg reg) {
  if (!node.has_tensor(after)) return;
  const int old = input(node.tensor(before), reg);
  const int momentum = input(node.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_MOMENTUM_EXT), reg);
  const int step = add_step(TileOp::mul, reg, {add_step(TileOp::sub, reg, {of_batch, old}), momentum});
  define(node.tensor(after), add_step(TileOp::add, reg, {old, step}), false);
}

void RowLowering::lower_batchnorm(const Node& node) {
  if (node.has_tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_PEER_STATS_EXT)) refuse("batch norm over several devices (peer statistics)");
  const int x = node.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_X_EXT);
  const auto math = static_cast<hipdnnDataType_t>(node.integer_or(HIPDNN_ATTR_BATCHNORM_COMP_TYPE_EXT, HIPDNN_DATA_FLOAT));
  check_math(math, true, "batch norm");
  const Reg reg = math == HIPDNN_DATA_DOUBLE || tensor(x).dtype == HIPDNN_DATA_DOUBLE ? Reg::f64 : Reg::f32;
  reduce_over(axes_where_unequal(x, node.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_SCALE_EXT)));
  const double count = reduced_count();
  const int elements = add_constant(count, reg);
  const int from = input(x, reg);
  const int mean = add_step(TileOp::div, reg, {add_fold(Fold::add, Prepare::none, from), elements});
  const int centred = add_step(TileOp::sub, reg, {from, mean});
  const int squares = add_fold(Fold::add, Prepare::square, centred);
  const int variance = add_step(TileOp::div, reg, {squares, elements});
  const int epsilon = input(node.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_EPSILON_EXT), reg);
  const int inverse = add_step(TileOp::rsqrt, reg, {add_step(TileOp::add, reg, {variance, epsilon})});
  if (node.has_tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_MEAN_EXT)) define(node.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_MEAN_EXT), mean, false);
  if (node.has_tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_INV_VARIANCE_EXT)) {
    define(node.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_INV_VARIANCE_EXT), inverse, false);
  }
  lower_running(node, HIPDNN_ATTR_OPERATION_BATCHNORM_PREV_RUNNING_MEAN_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_NEXT_RUNNING_MEAN_EXT, mean, reg);
  // The running variance estimates that of all batches: divided by one element less.
  const int unbiased = count > 1 ? add_step(TileOp::div, reg, {squares, add_constant(count - 1, reg)}) : variance;
  lower_running(node, HIPDNN_ATTR_OPERATION_BATCHNORM_PREV_RUNNING_VARIANCE_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_NEXT_RUNNING_VARIANCE_EXT,
                unbiased, reg);
  define(node.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_Y_EXT),
         normalized(centred, inverse, node, HIPDNN_ATTR_OPERATION_BATCHNORM_SCALE_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_BIAS_EXT, reg), false);
}

}  // namespace hipdnn_port
