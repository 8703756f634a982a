// Kernels that make floats of codes of 4 and 8 bits.
#pragma once

#include <cstdint>

namespace hipdnn_port {

/// to[i] = (codes[i] - zero) * scale: unsigned codes of one block.
struct CodesArgs {
  const std::uint8_t* codes = nullptr;  ///< of 4 bits: two to a byte, the first in the lower half; `count` is even then
  std::int64_t count = 0;
  float zero = 0.0f;
  float scale = 1.0f;
  float* to = nullptr;
};

struct CodeKernels {
  void (*floats_of_4)(const CodesArgs&);
  void (*floats_of_8)(const CodesArgs&);
};

}  // namespace hipdnn_port
