// Table of pointwise modes.
//
// Operand order where the ABI's headers leave it open:
// - BINARY_SELECT: OUT = IN_2 != 0 ? IN_0 : IN_1. hipDNN's public header says "ternary select based on condition" and its reference
//   executor has no functor for it; hipDNN mirrors cuDNN's frontend, whose binary_select(input0, input1, mask) and causal-mask lowering
//   put the kept value first, the replacement second and the predicate third.
// - ADD_SQUARE: IN_0 + IN_1 * IN_1, as hipDNN's backend header and cuDNN state it.
// - GEN_INDEX: the position along AXIS of each element of IN_0; its values are not read.
#include <algorithm>
#include <array>

#include "rowwise_lowering.h"

namespace hipdnn_port {
namespace {

constexpr auto modes = std::to_array<PointwiseMode>({
    {HIPDNN_POINTWISE_ABS, "ABS", 1, ModeClass::arithmetic, TileOp::abs},
    {HIPDNN_POINTWISE_ADD, "ADD", 2, ModeClass::arithmetic, TileOp::add},
    {HIPDNN_POINTWISE_ADD_SQUARE, "ADD_SQUARE", 2, ModeClass::arithmetic, TileOp::add_square},
    {HIPDNN_POINTWISE_BINARY_SELECT, "BINARY_SELECT", 3, ModeClass::select, TileOp::select},
    {HIPDNN_POINTWISE_CEIL, "CEIL", 1, ModeClass::real, TileOp::ceil},
    {HIPDNN_POINTWISE_CMP_EQ, "CMP_EQ", 2, ModeClass::compare, TileOp::eq},
    {HIPDNN_POINTWISE_CMP_GE, "CMP_GE", 2, ModeClass::compare, TileOp::ge},
    {HIPDNN_POINTWISE_CMP_GT, "CMP_GT", 2, ModeClass::compare, TileOp::gt},
    {HIPDNN_POINTWISE_CMP_LE, "CMP_LE", 2, ModeClass::compare, TileOp::le},
    {HIPDNN_POINTWISE_CMP_LT, "CMP_LT", 2, ModeClass::compare, TileOp::lt},
    {HIPDNN_POINTWISE_CMP_NEQ, "CMP_NEQ", 2, ModeClass::compare, TileOp::ne},
    {HIPDNN_POINTWISE_DIV, "DIV", 2, ModeClass::arithmetic, TileOp::div},
    {HIPDNN_POINTWISE_ELU_FWD, "ELU_FWD", 1, ModeClass::real, TileOp::elu},
    {HIPDNN_POINTWISE_ERF, "ERF", 1, ModeClass::real, TileOp::erf},
    {HIPDNN_POINTWISE_EXP, "EXP", 1, ModeClass::real, TileOp::exp},
    {HIPDNN_POINTWISE_FLOOR, "FLOOR", 1, ModeClass::real, TileOp::floor},
    {HIPDNN_POINTWISE_GELU_APPROX_TANH_FWD, "GELU_APPROX_TANH_FWD", 1, ModeClass::real, TileOp::gelu_tanh},
    {HIPDNN_POINTWISE_GELU_FWD, "GELU_FWD", 1, ModeClass::real, TileOp::gelu},
    {HIPDNN_POINTWISE_GEN_INDEX, "GEN_INDEX", 1, ModeClass::index, TileOp::copy},
    {HIPDNN_POINTWISE_IDENTITY, "IDENTITY", 1, ModeClass::identity, TileOp::copy},
    {HIPDNN_POINTWISE_LOG, "LOG", 1, ModeClass::real, TileOp::log},
    {HIPDNN_POINTWISE_LOGICAL_AND, "LOGICAL_AND", 2, ModeClass::logical, TileOp::logical_and},
    {HIPDNN_POINTWISE_LOGICAL_NOT, "LOGICAL_NOT", 1, ModeClass::logical, TileOp::logical_not},
    {HIPDNN_POINTWISE_LOGICAL_OR, "LOGICAL_OR", 2, ModeClass::logical, TileOp::logical_or},
    {HIPDNN_POINTWISE_MAX, "MAX", 2, ModeClass::arithmetic, TileOp::max},
    {HIPDNN_POINTWISE_MIN, "MIN", 2, ModeClass::arithmetic, TileOp::min},
    {HIPDNN_POINTWISE_MUL, "MUL", 2, ModeClass::arithmetic, TileOp::mul},
    {HIPDNN_POINTWISE_NEG, "NEG", 1, ModeClass::arithmetic, TileOp::neg},
    {HIPDNN_POINTWISE_RECIPROCAL, "RECIPROCAL", 1, ModeClass::real, TileOp::reciprocal},
    {HIPDNN_POINTWISE_RELU_FWD, "RELU_FWD", 1, ModeClass::arithmetic, TileOp::relu},
    {HIPDNN_POINTWISE_RSQRT, "RSQRT", 1, ModeClass::real, TileOp::rsqrt},
    {HIPDNN_POINTWISE_SIGMOID_FWD, "SIGMOID_FWD", 1, ModeClass::real, TileOp::sigmoid},
    {HIPDNN_POINTWISE_SIN, "SIN", 1, ModeClass::real, TileOp::sin},
    {HIPDNN_POINTWISE_SOFTPLUS_FWD, "SOFTPLUS_FWD", 1, ModeClass::real, TileOp::softplus},
    {HIPDNN_POINTWISE_SQRT, "SQRT", 1, ModeClass::real, TileOp::sqrt},
    {HIPDNN_POINTWISE_SUB, "SUB", 2, ModeClass::arithmetic, TileOp::sub},
    {HIPDNN_POINTWISE_SWISH_FWD, "SWISH_FWD", 1, ModeClass::real, TileOp::swish},
    {HIPDNN_POINTWISE_TAN, "TAN", 1, ModeClass::real, TileOp::tan},
    {HIPDNN_POINTWISE_TANH_FWD, "TANH_FWD", 1, ModeClass::real, TileOp::tanh},
});

}  // namespace

const PointwiseMode* find_pointwise_mode(hipdnnPointwiseMode_t mode) {
  const auto row = std::find_if(modes.begin(), modes.end(), [mode](const PointwiseMode& m) { return m.mode == mode; });
  return row == modes.end() ? nullptr : &*row;
}

}  // namespace hipdnn_port
