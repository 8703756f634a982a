#include "panel_weights.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <vector>

#include "kernels_blocks.h"
#include "kernels_panels.h"
#include "packed_memory.h"
#include "rowwise_parallel.h"
#include "shared_forms.h"

namespace hipdnn_port {
namespace {

/// Elements of a column that are copied at once: a panel's part stays in the first-level cache.
constexpr std::int64_t kRun = 64;

/// Copies rows first to last of one panel.
template <class Element>
class PanelCopy {
 public:
  PanelCopy(const PanelWeights& packed, const Tensor& weights, const void* from)
      : packed_(packed),
        depth_(weights.dims[weights.dims.size() - 2]),
        columns_(weights.dims.back()),
        depth_stride_(weights.strides[weights.strides.size() - 2]),
        column_stride_(weights.strides.back()),
        from_(static_cast<const Element*>(from)) {}

  void operator()(std::int64_t panel, std::int64_t first, std::int64_t last) const {
    Element* const to = reinterpret_cast<Element*>(packed_.elements) + panel * packed_.panel_elements();
    const std::int64_t count = std::min(kPanelColumns, columns_ - panel * kPanelColumns);
    const std::int64_t filled = std::min(last, depth_);
    const Element* const from = from_ + panel * kPanelColumns * column_stride_;
    if (count < kPanelColumns) std::fill(to + first * kPanelColumns, to + last * kPanelColumns, Element{});
    if (last > filled) std::fill(to + std::max(first, filled) * kPanelColumns, to + last * kPanelColumns, Element{});
    if (column_stride_ == 1) {
      for (std::int64_t k = first; k < filled; ++k) std::copy_n(from + k * depth_stride_, count, to + k * kPanelColumns);
      return;
    }
    for (std::int64_t n = 0; n < count; ++n) {
      for (std::int64_t k = first; k < filled; ++k) to[k * kPanelColumns + n] = from[k * depth_stride_ + n * column_stride_];
    }
  }

 private:
  const PanelWeights& packed_;
  std::int64_t depth_, columns_, depth_stride_, column_stride_;
  const Element* from_;
};

/// Runs of rows of all panels, so that each line of a row is read while it is near.
template <class Element>
void copy_panels(const PanelWeights& packed, const Tensor& weights, const void* from, int threads) {
  const PanelCopy<Element> copy(packed, weights, from);
  const std::int64_t runs = (packed.depth + kRun - 1) / kRun;
  parallel_ranges(useful_threads(threads, runs, packed.panels * packed.panel_elements(), 1), runs, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t run = first; run < last; ++run) {
      for (std::int64_t panel = 0; panel < packed.panels; ++panel) copy(panel, run * kRun, std::min((run + 1) * kRun, packed.depth));
    }
  });
}

}  // namespace

std::int64_t PanelWeights::panel_elements() const { return depth * kPanelColumns; }

const std::byte* PanelWeights::row(std::int64_t panel, std::int64_t k) const {
  return elements + (panel * panel_elements() + k * kPanelColumns) * element_bytes;
}

PanelWeights unplaced_panels(const Tensor& weights) {
  PanelWeights packed;
  packed.depth = (weights.dims[weights.dims.size() - 2] + kDepthStep - 1) / kDepthStep * kDepthStep;
  packed.panels = (weights.dims.back() + kPanelColumns - 1) / kPanelColumns;
  packed.element_bytes = static_cast<std::int64_t>(element_bytes(weights.dtype));
  return packed;
}

void pack_panels(const PanelWeights& packed, const Tensor& weights, const void* from, int threads) {
  if (packed.element_bytes == sizeof(float)) return copy_panels<std::uint32_t>(packed, weights, from, threads);
  copy_panels<std::uint16_t>(packed, weights, from, threads);
}

std::shared_ptr<const PanelWeights> packed_panels(const Tensor& weights, const void* from, int threads) {
  using Dims = std::vector<std::int64_t>;
  using Key = std::tuple<const void*, hipdnnDataType_t, Dims, Dims>;
  static SharedForms<Key, PanelWeights> forms;
  return forms.find({from, weights.dtype, weights.dims, weights.strides}, [&] {
    auto packed = std::make_shared<PanelWeights>(unplaced_panels(weights));
    packed->memory = packed_memory(static_cast<std::size_t>(packed->bytes()));
    packed->elements = static_cast<std::byte*>(packed->memory.get());
    pack_panels(*packed, weights, from, threads);
    return packed;
  });
}

}  // namespace hipdnn_port
