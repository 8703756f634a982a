// Kernels of convolutions with groups of few channels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hipdnn_port {

/// Results of a group that lie side by side in a vector.
constexpr std::int64_t kGroupLanes = 8;
/// Channels of a group come in multiples of this.
constexpr std::int64_t kGroupChannels = 4;
/// Pixels whose sums stay in registers.
constexpr std::int64_t kGroupPixels = 7;

/// results[p * result_row + n] = sum over taps and channels of pixels[tap][p][offset + c] * weights[tap][c][n].
struct GroupArgs {
  std::int64_t taps = 1;
  std::int64_t channels = 1;              ///< of a group
  const float* const* pixels = nullptr;   ///< [taps] rows of pixels; each has all channels side by side
  std::int64_t pixel_row = 0;
  std::int64_t offset = 0;                ///< of the group's first channel
  const float* weights = nullptr;         ///< [taps, channels, kGroupLanes]
  float* results = nullptr;
  std::int64_t result_row = 0;
};

/// As many pixels as the index, and one.
using GroupKernels = std::array<void (*)(const GroupArgs&), kGroupPixels>;

}  // namespace hipdnn_port
