// Loops of `map` compiled for the instruction set the build targets, for every type.
#include "map_loops.h"

#include <cstdint>
#include <type_traits>

#ifndef HIPDNN_MLIR_SANITIZED
#pragma GCC optimize("O3")
#endif

namespace hipdnn_port::kernels::map_baseline {
constexpr bool is_complete = true;
#include "../engines/kernels_math.inc"
#include "map_functors.inc"
#include "map_tiles.inc"
}  // namespace hipdnn_port::kernels::map_baseline

const hipdnn_port::kernels::MapLoops& hipdnn_port::kernels::map_loops_baseline() { return map_baseline::loops; }
