// Tile kernels: tight loops over a block of elements that stays in cache, one implementation per instruction set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hipdnn_backend.h"
#include "kernels_attention.h"

namespace hipdnn_port {

/// How tile elements are held while computed on. Booleans are f32 with the values 0 and 1.
enum class Reg : std::uint8_t { f32, f64, i64 };

/// Bytes of one tile element.
constexpr std::int64_t reg_bytes(Reg reg) { return reg == Reg::f32 ? 4 : 8; }

/// The memory type with the layout of a register type.
constexpr hipdnnDataType_t reg_type(Reg reg) {
  return reg == Reg::f32 ? HIPDNN_DATA_FLOAT : reg == Reg::f64 ? HIPDNN_DATA_DOUBLE : HIPDNN_DATA_INT64;
}

/// Elementwise operations. Unless said otherwise operands and result share one register type.
enum class TileOp : std::uint8_t {
  // two operands
  add, sub, mul, div, min, max, add_square,
  cmp_eq, cmp_ne, cmp_gt, cmp_ge, cmp_lt, cmp_le,  // result f32
  logical_and, logical_or,                         // f32 only
  exp_sub,                                         // exp(a - b); f32, f64
  // three operands
  select,   // c != 0 ? a : b; c is f32
  mul_add,  // a * b + c; f32, f64
  // one operand
  copy, abs, neg, logical_not, is_nonzero,         // the last: result f32
  ceil, floor, sqrt, rsqrt, reciprocal, exp, log, sin, tan, tanh, erf, sigmoid, gelu, gelu_tanh,
  swish, elu, softplus,                            // param[0]: beta, alpha, beta
  relu,                                            // param: lower clip, upper clip, slope below the lower clip
  round_f16, round_bf16,                           // f32 rounded to the narrower type
  wrap_i32, wrap_i8, wrap_u8,                      // i64 modulo the narrower type
  to_f32, to_f64, to_i64,                          // to_i64: param: least and greatest result (saturates, NaN is 0)
};

/// Combination of a reduction, and what happens to an element before it.
enum class Fold : std::uint8_t { add, mul, min, max };
enum class Prepare : std::uint8_t { none, abs, square, one_if_zero };

/// One kernel call: `rows` x `cols` elements; strides are in elements. In elementwise kernels and folds the column stride of a source
/// is 0 or 1 as the kernel was chosen for, that of the destination 1; in conversions all strides are free.
struct TileArgs {
  std::int64_t rows = 1;
  std::int64_t cols = 1;
  void* dst = nullptr;
  std::int64_t dst_row = 0;
  std::int64_t dst_col = 1;
  std::array<const void*, 3> src{};
  std::array<std::int64_t, 3> src_row{};
  std::array<std::int64_t, 3> src_col{};
  const double* param = nullptr;
};

using TileKernel = void (*)(const TileArgs&);

/// The kernels of one instruction set. Every lookup returns nullptr for a combination that does not exist.
struct TileKernels {
  const char* isa;
  /// `columns`: bit i says that source i advances along columns (else it is one value per row).
  TileKernel (*elementwise)(TileOp op, Reg operands, unsigned columns);
  /// Copy with conversion. One of the two types is a register type, or both have the same size and the bytes are copied.
  TileKernel (*convert)(hipdnnDataType_t from, hipdnnDataType_t to);
  /// One result per row (`along_rows` false) or per column (`along_rows` true: rows are folded).
  TileKernel (*fold)(Fold fold, Prepare prepare, Reg reg, bool along_rows);
  /// dst = param[0] + row * src_row[0] + col * src_col[0], as i64.
  TileKernel iota;
  AttentionKernels attention;
};

/// The best kernels this CPU runs, chosen once.
const TileKernels& tile_kernels();

const TileKernels& tile_kernels_baseline();
const TileKernels& tile_kernels_avx2();
const TileKernels& tile_kernels_avx512();

}  // namespace hipdnn_port
