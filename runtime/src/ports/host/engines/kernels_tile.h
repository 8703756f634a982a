// Tile kernels: tight loops over a block of elements that stays in cache, one implementation per instruction set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "element_type.h"
#include "hipdnn_backend.h"
#include "kernels_attention.h"
#include "kernels_blocks.h"
#include "kernels_cells.h"
#include "kernels_codes.h"
#include "kernels_dots.h"
#include "kernels_gemv.h"
#include "kernels_groups.h"
#include "kernels_panels.h"
#include "kernels_winograd.h"

namespace hipdnn_port {

/// How tile elements are held while computed on: any type but floats of 16 and 8 bits, which are held as f32.
using Reg = DType;
constexpr Reg reg_of(DType type) { return is_narrow(type) ? Reg::f32 : type; }

/// Elementwise operations. Unless said otherwise operands and result share one register type. docs/host-library.md says what those of
/// elementwise kernels compute.
enum class TileOp : std::uint8_t {
  // one operand
  copy, cast,                                      // cast: integers wrap, floats become integers toward zero in 64 bits, then wrap
  saturate,                                        // an integer, rounded half to even and clamped
  to_i64,                                          // f32, f64; param: least and greatest result (toward zero, NaN is 0)
  narrow,                                          // f32 to i8 or u8 (toward zero, clamped, NaN is 0)
  quantize,                                        // f32 to i8 or u8: a / param[0] rounded half to even, + param[1], clamped
  dequantize,                                      // i8 or u8 to f32: (a - param[0]) * param[1]
  round_f16, round_bf16, round_f8e4m3, round_f8e5m2,  // f32, f64 rounded to the narrower type; result f32
  wrap_i32, wrap_i8, wrap_u8,                      // i64 modulo the narrower type
  neg, abs, sign, bit_not, logical_not,            // the last: bool only
  floor, ceil, round, trunc, sqrt, rsqrt, reciprocal, exp, log, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh,
  erf, sigmoid, gelu, gelu_tanh,
  swish, elu, softplus,                            // param[0]: beta, alpha, beta
  relu,                                            // param: lower clip, upper clip, slope below the lower clip
  is_nan, is_inf, is_pos_inf, is_neg_inf,          // result bool
  // two operands
  add, sub, mul, div, mod, fmod, pow, min, max, atan2, bit_and, bit_or, bit_xor, shl, shr,
  wrapping_div,                                    // as div, but the least i64 by -1 is itself
  add_square, exp_sub,                             // a + b * b; exp(a - b)
  logical_and, logical_or, logical_xor,            // bool only
  eq, ne, lt, le, gt, ge,                          // result bool
  // three operands
  select,   // a ? b : c; a is bool
  mul_add,  // a * b + c; f32, f64
};

/// Combination of a reduction, and what happens to an element before it.
enum class Fold : std::uint8_t { add, mul, min, max };
enum class Prepare : std::uint8_t { none, abs, square, one_if_zero };

/// One kernel call: `rows` x `cols` elements; strides are in elements. In elementwise kernels and folds the column stride of a source
/// is 0 or 1, that of the destination 1; in conversions all strides are free.
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
  /// `operand`: type of the last operand.
  TileKernel (*elementwise)(TileOp op, Reg operand, Reg result);
  /// Copy with conversion. Floats become integers toward zero, clamped to the type. Types are equal, f32 and a 16-bit float, or one is
  /// f32, f64 or i64 and the other of hipDNN.
  TileKernel (*convert)(DType from, DType to);
  /// One result per row (`along_rows` false) or per column (`along_rows` true: rows are folded). f32, f64 and i64.
  TileKernel (*fold)(Fold fold, Prepare prepare, Reg reg, bool along_rows);
  /// dst = param[0] + row * src_row[0] + col * src_col[0], as i64 in adjacent columns.
  TileKernel iota;
  AttentionKernels attention;
  BlockKernels blocks;
  CodeKernels codes;
  DotsKernel dots;
  GemvKernel gemv;
  PanelKernels panels;
  WinogradKernels winograd;
  GroupKernels groups;
  CellKernels cells;
};

/// The best kernels this CPU runs, chosen once. Rare types have elementwise kernels of the baseline only.
const TileKernels& tile_kernels();
/// The elementwise kernel of the best instruction set that has one, nullptr where none has.
TileKernel find_elementwise(TileOp op, Reg operand, Reg result);
/// The conversion between hipDNN's types, nullptr where there is none.
TileKernel find_conversion(hipdnnDataType_t from, hipdnnDataType_t to);

const TileKernels& tile_kernels_baseline();
const TileKernels& tile_kernels_avx2();
const TileKernels& tile_kernels_avx512();

}  // namespace hipdnn_port
