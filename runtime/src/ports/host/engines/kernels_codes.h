// Kernels that make floats of codes of 4 and 8 bits.
#pragma once

#include <cstdint>

namespace hipdnn_port {

/// to[i] = (codes[i] - zero) * scale, with a scale and a zero for each block. The codes are unsigned, part of a row.
struct CodesArgs {
  const std::uint8_t* codes = nullptr;  ///< of 4 bits: two to a byte, the first in the lower half
  std::int64_t first = 0;               ///< position of the first one in its block; even, as all sizes are
  std::int64_t count = 0;
  std::int64_t block = 0;
  const float* scales = nullptr;        ///< from the block of the first one on
  const std::uint8_t* zeros = nullptr;  ///< likewise; null where all are in the middle, 8 or 128
  float* to = nullptr;
};

/// Columns of one call of `dots_of_4`.
constexpr std::int64_t kCodeColumns = 4;

/// sums[c] = a . row c of codes, each (code - zero) * scale of its block: floats that are used once are not stored.
struct CodeDotsArgs {
  const float* a = nullptr;
  std::int64_t blocks = 0;
  std::int64_t block = 0;               ///< a multiple of kCodeStep
  const std::uint8_t* codes = nullptr;  ///< of 4 bits, kCodeColumns rows without gaps
  const float* scales = nullptr;        ///< [kCodeColumns, blocks]
  const std::uint8_t* zeros = nullptr;  ///< likewise; null where all are 8
  float* sums = nullptr;
};
constexpr std::int64_t kCodeStep = 16;

struct CodeKernels {
  void (*floats_of_4)(const CodesArgs&);
  void (*floats_of_8)(const CodesArgs&);
  void (*dots_of_4)(const CodeDotsArgs&);  ///< null where shifting lanes by numbers of their own is no instruction
};

}  // namespace hipdnn_port
