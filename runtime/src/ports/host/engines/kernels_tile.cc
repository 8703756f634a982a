// Choice of the instruction set of the tile kernels.
#include "kernels_tile.h"

#include "onednn_memory.h"

namespace hipdnn_port {

const TileKernels& tile_kernels() {
#if defined(__x86_64__)
  // oneDNN is asked since what __builtin_cpu_supports reads is empty in libraries that Zig links.
  static const TileKernels& chosen = []() -> const TileKernels& {
    if (onednn::isa_includes(dnnl_cpu_isa_avx512_core)) return tile_kernels_avx512();
    if (onednn::isa_includes(dnnl_cpu_isa_avx2)) return tile_kernels_avx2();
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
