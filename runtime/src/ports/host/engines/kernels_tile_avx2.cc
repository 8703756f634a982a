// Tile kernels compiled for AVX2 with FMA.
#include "kernels_tile.h"

#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#ifndef HIPDNN_MLIR_SANITIZED
#pragma GCC optimize("O3")
#endif
#pragma GCC target("avx2,fma")

namespace hipdnn_port::tile_avx2 {
constexpr bool is_complete = false;
constexpr const char* isa_name = "avx2";
constexpr int register_bytes = 32;
constexpr int tile_rows = 6;     // of the products of attention: as many accumulators as leave registers for the operands
constexpr int tile_vectors = 2;
#include "kernels_all.inc"
}  // namespace hipdnn_port::tile_avx2

const hipdnn_port::TileKernels& hipdnn_port::tile_kernels_avx2() { return tile_avx2::kernels; }
#endif
