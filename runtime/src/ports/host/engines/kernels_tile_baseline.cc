// Tile kernels compiled for the instruction set the build targets.
#include "kernels_tile.h"

#include <type_traits>
#include <utility>

#pragma GCC optimize("O3")

namespace hipdnn_host::tile_baseline {
constexpr const char* isa_name = "baseline";
#include "kernels_math.inc"
#include "kernels_elementwise.inc"
#include "kernels_convert.inc"
#include "kernels_fold.inc"
#include "kernels_lookup.inc"
}  // namespace hipdnn_host::tile_baseline

const hipdnn_host::TileKernels& hipdnn_host::tile_kernels_baseline() { return tile_baseline::kernels; }
