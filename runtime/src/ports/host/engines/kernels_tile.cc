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

}  // namespace hipdnn_port
