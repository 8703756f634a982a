// Loops of `map` compiled for AVX2 with FMA.
#include "map_loops.h"

#include <cstdint>
#include <type_traits>

#if defined(__x86_64__)
#ifndef HIPDNN_MLIR_SANITIZED
#pragma GCC optimize("O3")
#endif
#pragma GCC target("avx2,fma")

namespace hipdnn_port::kernels::map_avx2 {
constexpr bool is_complete = false;
#include "../engines/kernels_math.inc"
#include "map_functors.inc"
#include "map_tiles.inc"
}  // namespace hipdnn_port::kernels::map_avx2

const hipdnn_port::kernels::MapLoops& hipdnn_port::kernels::map_loops_avx2() { return map_avx2::loops; }
#endif
