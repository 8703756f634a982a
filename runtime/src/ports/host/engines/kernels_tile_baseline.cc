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
#include "kernels_all.inc"
}  // namespace hipdnn_port::tile_baseline

const hipdnn_port::TileKernels& hipdnn_port::tile_kernels_baseline() { return tile_baseline::kernels; }
