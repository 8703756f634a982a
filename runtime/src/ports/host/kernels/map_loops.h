// Loops of the function `map`: one operation over a tile of registers, one implementation per instruction set.
#pragma once

#include <array>
#include <cstdint>

#include "image.h"

namespace hipdnn_port::kernels {

/// How a register holds elements of a type: float16 and bfloat16 as float.
constexpr DType register_type(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype; }

enum class MapOp : std::uint8_t {
  load, constant, index, store,
  cast, saturate, round_to,  // round_to: float rounded to the dtype of the instruction, f16 or bf16
  neg, abs, sign, floor, ceil, round, trunc, sqrt, rsqrt, exp, log, sin, cos, tan, asin, acos, atan, sinh, cosh, tanh, asinh, acosh, atanh,
  erf, logical_not, bit_not, is_nan, is_inf, is_pos_inf, is_neg_inf, reciprocal,
  add, sub, mul, div, mod, fmod, pow, min, max, logical_and, logical_or, logical_xor, bit_and, bit_or, bit_xor, shl, shr,
  eq, ne, lt, le, gt, ge, atan2,
  where,
};

/// out[i] = op(in[0][i], in[1][i], in[2][i]) for `count` consecutive elements. `out` may be one of the ins.
struct MapTile {
  void* out = nullptr;
  std::array<const void*, 3> in{};
  std::int64_t count = 0;
};
using MapLoop = void (*)(const MapTile&);

/// Elements between memory, `stride` elements apart, and a register.
using MapMove = void (*)(const void* source, void* destination, std::int64_t stride, std::int64_t count);

/// Loops of one instruction set; null for what has no loop there.
struct MapLoops {
  /// `operand`: type of the first operand, of the second for `where`. Both types are register types but for round_to.
  MapLoop (*find)(MapOp op, DType operand, DType result);
  MapMove (*load)(DType dtype);
  MapMove (*store)(DType dtype);
};

/// The loop of the best instruction set of this CPU that has one, null where none has.
MapLoop find_map_loop(MapOp op, DType operand, DType result);
MapMove find_map_load(DType dtype);
MapMove find_map_store(DType dtype);

/// Every operation and type.
const MapLoops& map_loops_baseline();
/// Those that real models spend time in.
const MapLoops& map_loops_avx2();
const MapLoops& map_loops_avx512();

}  // namespace hipdnn_port::kernels
