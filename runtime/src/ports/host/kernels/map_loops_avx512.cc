// Loops of `map` compiled for AVX-512.
#include "map_loops.h"

#include <cstdint>
#include <type_traits>

#if defined(__x86_64__)
#ifndef HIPDNN_MLIR_SANITIZED
#pragma GCC optimize("O3")
#endif
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,prefer-vector-width=512")

namespace hipdnn_port::kernels::map_avx512 {
constexpr bool is_complete = false;
#include "../engines/kernels_math.inc"
#include "map_functors.inc"
#include "map_tiles.inc"
}  // namespace hipdnn_port::kernels::map_avx512

const hipdnn_port::kernels::MapLoops& hipdnn_port::kernels::map_loops_avx512() { return map_avx512::loops; }
#endif
