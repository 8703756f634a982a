// Kernels of products with weights in panels: columns side by side, as many as a cache line holds of float32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hipdnn_port {

/// Rows of a panel come in multiples of this.
constexpr std::int64_t kDepthStep = 8;

/// c[r, n] = sum over k of a[r, k] * w[k, n], for the columns of adjacent panels, which lie side by side in c.
struct PanelProductArgs {
  std::int64_t rows = 1;         ///< at most PanelKernels::rows
  std::int64_t panels = 1;       ///< 1, PanelKernels::panels, or NarrowPanels::streams / rows
  std::int64_t depth = 0;        ///< a multiple of kDepthStep
  const float* a = nullptr;      ///< [depth, rows]: the rows of a lie element by element beside each other
  const void* weights = nullptr; ///< [panels][depth, kPanelColumns]
  std::int64_t panel = 0;        ///< elements from one panel to the next
  float* c = nullptr;
  std::int64_t c_row = 0;
  bool accumulates = false;      ///< adds to c
};

/// Kernels of one type of 16 bits.
struct NarrowPanels {
  std::int64_t streams;  ///< from memory at once, each through a panel: of one row, of two rows half as many
  void (*product)(const PanelProductArgs&);
  void (*widen)(const void* from, float* to, std::int64_t count);  ///< whole rows of panels
};

/// c[r, n] = (sum over k of a[r, k] * w[k, n], plus base[r]) * scale * factor[n], for the columns of adjacent panels. Sums are exact.
struct BytePanelArgs {
  std::int64_t rows = 1;                 ///< at most PanelKernels::rows
  std::int64_t panels = 2;               ///< a multiple of 2
  std::int64_t depth = 0;                ///< a multiple of kDepthStep
  const std::int16_t* a = nullptr;       ///< [depth / 2, rows, 2]
  const std::int32_t* base = nullptr;    ///< [rows]
  const std::int8_t* weights = nullptr;  ///< [panels][depth / 2, kPanelColumns, 2], without gaps
  float scale = 1.0F;
  const float* factor = nullptr;         ///< [panels][kPanelColumns]
  float* c = nullptr;
  std::int64_t c_row = 0;
};

/// Rows as the product of bytes reads them: to = from / scale rounded to nearest even, in [low, high].
struct BytesOfRowsArgs {
  std::int64_t rows = 1;
  std::int64_t depth = 0;        ///< a multiple of 2
  const float* from = nullptr;   ///< [depth, rows]
  float scale = 1.0F;
  float low = 0.0F;
  float high = 0.0F;
  std::int16_t* to = nullptr;    ///< [depth / 2, rows, 2]
  std::int32_t* sums = nullptr;  ///< [rows], of `to`
};

struct BytePanels {
  void (*product)(const BytePanelArgs&);
  void (*round)(const BytesOfRowsArgs&);
  void (*widen_range)(const float* from, std::int64_t count, float* low, float* high);  ///< to what the numbers are within
};

struct PanelKernels {
  std::int64_t rows;    ///< whose sums stay in registers
  std::int64_t panels;  ///< beside each other, the same
  void (*product)(const PanelProductArgs&);  ///< of widened weights
  NarrowPanels halves;
  NarrowPanels bfloats;
  BytePanels bytes;
};

}  // namespace hipdnn_port
