#include "values.h"

#include <algorithm>
#include <span>
#include <utility>

namespace hipdnn_cuda {
namespace {

using Pair = std::pair<int, int>;

std::optional<int> find(std::span<const Pair> table, int value) {
  const auto found = std::ranges::find(table, value, &Pair::first);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

#define SAME(name) {HIPDNN_##name, CUDNN_##name}

constexpr Pair data_types[] = {SAME(DATA_FLOAT),    SAME(DATA_DOUBLE), SAME(DATA_HALF),    SAME(DATA_INT8),     SAME(DATA_INT32),    SAME(DATA_UINT8),
                               SAME(DATA_BFLOAT16), SAME(DATA_INT64),  SAME(DATA_BOOLEAN), SAME(DATA_FP8_E4M3), SAME(DATA_FP8_E5M2), SAME(DATA_FP8_E8M0),
                               SAME(DATA_FP4_E2M1)};

constexpr Pair pointwise_modes[] = {
    SAME(POINTWISE_ABS),          SAME(POINTWISE_ADD),         SAME(POINTWISE_ADD_SQUARE),
    SAME(POINTWISE_CEIL),         SAME(POINTWISE_CMP_EQ),      SAME(POINTWISE_CMP_GE),
    SAME(POINTWISE_CMP_GT),       SAME(POINTWISE_CMP_LE),      SAME(POINTWISE_CMP_LT),
    SAME(POINTWISE_CMP_NEQ),      SAME(POINTWISE_DIV),         SAME(POINTWISE_ELU_FWD),
    SAME(POINTWISE_ERF),          SAME(POINTWISE_EXP),         SAME(POINTWISE_FLOOR),
    SAME(POINTWISE_GELU_FWD),     SAME(POINTWISE_GEN_INDEX),   SAME(POINTWISE_GELU_APPROX_TANH_FWD),
    SAME(POINTWISE_IDENTITY),     SAME(POINTWISE_LOG),         SAME(POINTWISE_LOGICAL_AND),
    SAME(POINTWISE_LOGICAL_NOT),  SAME(POINTWISE_LOGICAL_OR),  SAME(POINTWISE_MAX),
    SAME(POINTWISE_MIN),          SAME(POINTWISE_MUL),         SAME(POINTWISE_NEG),
    SAME(POINTWISE_RECIPROCAL),   SAME(POINTWISE_RELU_FWD),    SAME(POINTWISE_RSQRT),
    SAME(POINTWISE_SIGMOID_FWD),  SAME(POINTWISE_SIN),         SAME(POINTWISE_SOFTPLUS_FWD),
    SAME(POINTWISE_SQRT),         SAME(POINTWISE_SUB),         SAME(POINTWISE_SWISH_FWD),
    SAME(POINTWISE_TAN),          SAME(POINTWISE_TANH_FWD),    SAME(POINTWISE_BINARY_SELECT),
};

constexpr Pair reductions[] = {SAME(REDUCE_TENSOR_ADD),  SAME(REDUCE_TENSOR_MUL), SAME(REDUCE_TENSOR_MIN),   SAME(REDUCE_TENSOR_MAX),  SAME(REDUCE_TENSOR_AMAX),
                               SAME(REDUCE_TENSOR_AVG),  SAME(REDUCE_TENSOR_NORM1), SAME(REDUCE_TENSOR_NORM2), SAME(REDUCE_TENSOR_MUL_NO_ZEROS)};

constexpr Pair resample_modes[] = {SAME(RESAMPLE_MAXPOOL), SAME(RESAMPLE_AVGPOOL_EXCLUDE_PADDING), SAME(RESAMPLE_AVGPOOL_INCLUDE_PADDING)};

#undef SAME

}  // namespace

std::optional<int> cudnn_data_type(hipdnnDataType_t type) { return find(data_types, type); }
std::optional<int> cudnn_pointwise(int mode) { return find(pointwise_modes, mode); }
std::optional<int> cudnn_reduction(int operation) { return find(reductions, operation); }
std::optional<int> cudnn_resample(int mode) { return find(resample_modes, mode); }

}  // namespace hipdnn_cuda
