// Choice of the instruction set of the tile kernels.
#include "kernels_tile.h"

namespace hipdnn_port {

const TileKernels& tile_kernels() {
#if defined(__x86_64__)
  static const TileKernels& chosen = []() -> const TileKernels& {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl")) {
      return tile_kernels_avx512();
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return tile_kernels_avx2();
    return tile_kernels_baseline();
  }();
  return chosen;
#else
  return tile_kernels_baseline();
#endif
}

TileKernel find_elementwise(TileOp op, Reg operand, Reg result) {
  const TileKernel fast = tile_kernels().elementwise(op, operand, result);
  return fast != nullptr ? fast : tile_kernels_baseline().elementwise(op, operand, result);
}

TileKernel find_conversion(hipdnnDataType_t from, hipdnnDataType_t to) {
  const auto source = dtype_of(from);
  const auto target = dtype_of(to);
  return source && target ? tile_kernels().convert(*source, *target) : nullptr;
}

}  // namespace hipdnn_port
