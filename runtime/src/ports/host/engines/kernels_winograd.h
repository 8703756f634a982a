// Kernels of convolutions with 3 x 3 taps by Winograd's F(2 x 2, 3 x 3): 16 numbers of 4 x 4 pixels, times those of a filter, make 2 x 2 results.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hipdnn_port {

constexpr std::int64_t kWinogradNumbers = 16;
/// Channels come in multiples of this.
constexpr std::int64_t kWinogradChannels = 16;

/// to[i * step + c] = number i of channel c.
struct WinogradInputArgs {
  std::array<const float*, kWinogradNumbers> pixels{};  ///< by rows; each has the channels side by side
  std::int64_t channels = 0;
  float* to = nullptr;
  std::int64_t step = 0;
};

/// results[i][c] = result i of channel c, by rows, from products that lie as WinogradInputArgs::to.
struct WinogradOutputArgs {
  const float* from = nullptr;
  std::int64_t step = 0;
  std::int64_t channels = 0;
  std::array<float*, 4> results{};
};

/// c[r, n] = sum over k of a[r, k] * w[k, n], for the columns of one panel.
struct RowProductArgs {
  std::int64_t rows = 1;  ///< at most WinogradKernels::rows
  std::int64_t depth = 0;
  const float* a = nullptr;
  std::int64_t a_row = 0;
  const float* weights = nullptr;  ///< [depth, kPanelColumns]
  float* c = nullptr;
  std::int64_t c_row = 0;
};

struct WinogradKernels {
  std::int64_t rows;  ///< whose sums stay in registers
  void (*input)(const WinogradInputArgs&);
  void (*output)(const WinogradOutputArgs&);
  void (*product)(const RowProductArgs&);
};

}  // namespace hipdnn_port
