// Tile kernels compiled for the instruction set the build targets, for every type.
#include "kernels_tile.h"

#include <cstdint>
#include <type_traits>
#include <utility>

#ifndef HIPDNN_MLIR_SANITIZED
#pragma GCC optimize("O3")
#endif

namespace hipdnn_port::tile_baseline {
constexpr bool is_complete = true;
constexpr const char* isa_name = "baseline";
constexpr int register_bytes = 16;
constexpr int tile_rows = 6;     // of the products of attention: as many accumulators as leave registers for the operands
constexpr int tile_vectors = 2;
constexpr int panel_rows = 3;    // the same of products with panels
constexpr int panels_at_once = 1;
constexpr int narrow_streams = 1;

typedef std::int32_t HalfBits __attribute__((vector_size(register_bytes)));

inline HalfBits load_narrow(const std::uint16_t* from) {
  typedef std::uint16_t Narrow __attribute__((vector_size(register_bytes / 2)));
  Narrow narrow;
  __builtin_memcpy(&narrow, from, sizeof narrow);
  return __builtin_convertvector(narrow, HalfBits);
}

/// No operand of the arithmetic is denormal: such ones are slow.
inline HalfBits widen_halves(const std::uint16_t* from) {
  typedef float Floats __attribute__((vector_size(register_bytes)));
  const HalfBits bits = load_narrow(from);
  const HalfBits magnitude = (bits & 0x7fff) << 13;
  const HalfBits normal = magnitude + ((magnitude >= 0x0f800000 ? HalfBits{} + 224 : HalfBits{} + 112) << 23);
  const HalfBits least = HalfBits{} + (113 << 23);  // 2^-14: what a denormal number is counted from
  const HalfBits denormal = (HalfBits)((Floats)(magnitude + least) - (Floats)least);
  return (magnitude < 0x00800000 ? denormal : normal) | (bits & 0x8000) << 16;
}
inline HalfBits widen_bfloats(const std::uint16_t* from) { return load_narrow(from) << 16; }

typedef std::int16_t Shorts __attribute__((vector_size(register_bytes)));

inline Shorts widen_pairs(const std::int8_t* from) {
  typedef std::int8_t Narrow __attribute__((vector_size(register_bytes / 2)));
  Narrow narrow;
  __builtin_memcpy(&narrow, from, sizeof narrow);
  return __builtin_convertvector(narrow, Shorts);
}
inline HalfBits multiply_pairs(Shorts a, Shorts b) {
  const HalfBits left = (HalfBits)a, right = (HalfBits)b;
  return (left >> 16) * (right >> 16) + ((left << 16) >> 16) * ((right << 16) >> 16);
}
#include "kernels_all.inc"
}  // namespace hipdnn_port::tile_baseline

const hipdnn_port::TileKernels& hipdnn_port::tile_kernels_baseline() { return tile_baseline::kernels; }
