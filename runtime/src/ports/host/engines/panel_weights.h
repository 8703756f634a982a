// Weights as they are, in the order in which the kernels of panels read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "frontend/graph.h"

namespace hipdnn_port {

/// Panels of kPanelColumns columns, each [depth, kPanelColumns]; what is not in the matrix is 0.
struct PanelWeights {
  std::int64_t depth = 0;  ///< the matrix's, up to a multiple of kDepthStep
  std::int64_t panels = 0;
  std::int64_t element_bytes = 0;
  std::shared_ptr<void> memory;     ///< null where the panels lie in somebody else's
  std::byte* elements = nullptr;    ///< on a cache line

  std::int64_t panel_elements() const;
  std::int64_t bytes() const { return panels * panel_elements() * element_bytes; }
  /// Row k of a panel.
  const std::byte* row(std::int64_t panel, std::int64_t k) const;
};

/// The sizes of panels of a tensor [..., depth, columns] of 2 or 4 bytes an element.
PanelWeights unplaced_panels(const Tensor& weights);
/// Fill the panels, which have their place.
void pack_panels(const PanelWeights& packed, const Tensor& weights, const void* from, int threads);
/// Packed. Thread-safe; plans for the same constant share what they hold.
std::shared_ptr<const PanelWeights> packed_panels(const Tensor& weights, const void* from, int threads);

}  // namespace hipdnn_port
