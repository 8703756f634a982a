// Choice of the instruction set of a loop.
#include "map_loops.h"

namespace hipdnn_port::kernels {
namespace {

const MapLoops& best_loops() {
#if defined(__x86_64__)
  static const MapLoops& chosen = []() -> const MapLoops& {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl")) {
      return map_loops_avx512();
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return map_loops_avx2();
    return map_loops_baseline();
  }();
  return chosen;
#else
  return map_loops_baseline();
#endif
}

}  // namespace

MapLoop find_map_loop(MapOp op, DType operand, DType result) {
  const MapLoop fast = best_loops().find(op, operand, result);
  return fast != nullptr ? fast : map_loops_baseline().find(op, operand, result);
}

MapMove find_map_load(DType dtype) { return best_loops().load(dtype); }
MapMove find_map_store(DType dtype) { return best_loops().store(dtype); }

}  // namespace hipdnn_port::kernels
