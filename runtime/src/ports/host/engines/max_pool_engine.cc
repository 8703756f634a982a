// HOST_MAX_POOL_ENGINE: max pooling that also stores where each maximum lies, as a position in the image plane: of the dims behind batch and
// channels, in C order. Of equal maxima the first counts; a NaN is greater than any number. oneDNN keeps such positions in a form of its own.
#include <algorithm>
#include <array>
#include <limits>

#include "frontend/engine.h"
#include "frontend/status.h"
#include "rowwise_engine.h"
#include "rowwise_parallel.h"
#include "rowwise_program.h"
#include "widened_plan.h"

namespace hipdnn_port {
namespace {

constexpr std::size_t kSpatial = 3;  ///< dims of an image; those that it lacks are in front, of size 1

constexpr std::int64_t kChannels = 64;  ///< that are pooled together

/// A number per spatial dim.
using Spatial = std::array<std::int64_t, kSpatial>;

struct Layout {
  std::int64_t batch = 0, channel = 0;
  Spatial spatial{};
};

struct Pooling {
  Tensor x, y, index;
  Spatial in{}, out{}, window{}, stride{}, before{};
  Layout from{}, to{}, at{};
};

Spatial spatial_of(const std::vector<std::int64_t>& values, std::size_t skipped, std::int64_t otherwise) {
  Spatial spatial;
  spatial.fill(otherwise);
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(skipped);
  std::copy(first, values.end(), spatial.end() - (values.end() - first));
  return spatial;
}

Layout layout_of(const Tensor& t) { return {t.strides[0], t.strides[1], spatial_of(t.strides, 2, 0)}; }

Pooling read_pooling(const Graph& graph) {
  if (graph.nodes.size() != 1 || graph.nodes[0].type != HIPDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR ||
      !graph.nodes[0].has_tensor(HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC)) {
    throw Refusal("takes one max pooling with indices");
  }
  const Node& node = graph.nodes[0];
  Pooling p{graph.operand(HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC), graph.operand(HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC),
            graph.operand(HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC)};
  for (const Tensor* t : {&p.x, &p.y}) {
    if (t->dtype != HIPDNN_DATA_FLOAT || !t->has_pointer()) throw Refusal(text(describe(*t), " is no tensor of 16 or 32-bit floats in memory"));
  }
  if ((p.index.dtype != HIPDNN_DATA_INT32 && p.index.dtype != HIPDNN_DATA_INT64) || !p.index.has_pointer()) {
    throw Refusal(text("the indices are ", describe(p.index), ", expected int32 or int64 in memory"));
  }
  if (p.x.rank() < 3 || p.x.rank() > 5) throw Refusal(text(describe(p.x), " has not 1 to 3 dims behind batch and channels"));
  p.in = spatial_of(p.x.dims, 2, 1);
  p.out = spatial_of(p.y.dims, 2, 1);
  p.window = spatial_of(node.ints(HIPDNN_ATTR_RESAMPLE_WINDOW_DIMS), 0, 1);
  p.stride = spatial_of(node.ints(HIPDNN_ATTR_RESAMPLE_STRIDES), 0, 1);
  p.before = spatial_of(node.ints(HIPDNN_ATTR_RESAMPLE_PRE_PADDINGS), 0, 0);
  const bool is_infinite = node.integer_or(HIPDNN_ATTR_RESAMPLE_PADDING_MODE, HIPDNN_PADDING_NEG_INF_PAD) == HIPDNN_PADDING_NEG_INF_PAD;
  for (std::size_t d = 0; d < kSpatial; ++d) {
    const std::int64_t last = (p.out[d] - 1) * p.stride[d] - p.before[d];
    if (p.before[d] >= p.window[d] || last >= p.in[d]) throw Refusal("a window lies in the padding, where no position is");
    if (!is_infinite && (p.before[d] > 0 || last + p.window[d] > p.in[d])) throw Refusal("the padding is not minus infinity");
  }
  p.from = layout_of(p.x);
  p.to = layout_of(p.y);
  p.at = layout_of(p.index);
  return p;
}

std::int64_t offset(const Layout& layout, std::int64_t batch, const Spatial& place) {
  std::int64_t sum = batch * layout.batch;
  for (std::size_t d = 0; d < kSpatial; ++d) sum += place[d] * layout.spatial[d];
  return sum;
}

/// All channels of one window, some at a time: their maxima stay in cache until all elements have been seen.
template <class Index>
void pool(const Pooling& p, const float* x, float* y, Index* index, std::int64_t batch, const Spatial& place) {
  Spatial first, last;
  for (std::size_t d = 0; d < kSpatial; ++d) {
    const std::int64_t start = place[d] * p.stride[d] - p.before[d];
    first[d] = std::max<std::int64_t>(start, 0);
    last[d] = std::min(start + p.window[d], p.in[d]);
  }
  const auto position = [&](const Spatial& s) { return static_cast<Index>((s[0] * p.in[1] + s[1]) * p.in[2] + s[2]); };
  const std::int64_t to = offset(p.to, batch, place), at = offset(p.at, batch, place);
  std::array<float, kChannels> best;   // NOLINT: filled below as far as it is read
  std::array<Index, kChannels> where;  // NOLINT
  for (std::int64_t begin = 0; begin < p.x.dims[1]; begin += kChannels) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(kChannels, p.x.dims[1] - begin));
    std::fill_n(best.begin(), count, -std::numeric_limits<float>::infinity());
    std::fill_n(where.begin(), count, position(first));
    for (Spatial tap = first; tap[0] < last[0]; ++tap[0]) {
      for (tap[1] = first[1]; tap[1] < last[1]; ++tap[1]) {
        for (tap[2] = first[2]; tap[2] < last[2]; ++tap[2]) {
          const float* const values = x + offset(p.from, batch, tap) + begin * p.from.channel;
          const Index here = position(tap);
          for (std::size_t c = 0; c < count; ++c) {
            const float value = values[static_cast<std::int64_t>(c) * p.from.channel];
            const bool wins = value > best[c] || value != value;
            best[c] = wins ? value : best[c];
            where[c] = wins ? here : where[c];
          }
        }
      }
    }
    for (std::size_t c = 0; c < count; ++c) {
      const std::int64_t channel = begin + static_cast<std::int64_t>(c);
      y[to + channel * p.to.channel] = best[c];
      index[at + channel * p.at.channel] = where[c];
    }
  }
}

class MaxPoolPlan final : public Plan {
 public:
  MaxPoolPlan(const Graph& graph, int threads) : pooling_(read_pooling(graph)), threads_(threads) {
    uids_ = pointer_uids(graph);
    const auto slot = [&](const Tensor& t) { return static_cast<std::size_t>(std::ranges::find(uids_, t.uid) - uids_.begin()); };
    slots_ = {slot(pooling_.x), slot(pooling_.y), slot(pooling_.index)};
  }

  std::string describe() const override { return "max pooling with indices"; }

  void execute(void* const* pointers, void*, const Launch& launch) const override {
    if (pooling_.index.dtype == HIPDNN_DATA_INT32) return run<std::int32_t>(pointers, launch.threads);
    run<std::int64_t>(pointers, launch.threads);
  }

 private:
  template <class Index>
  void run(void* const* pointers, int threads) const {
    const Pooling& p = pooling_;
    const std::int64_t windows = p.x.dims[0] * p.out[0] * p.out[1] * p.out[2];
    const auto taps = static_cast<std::size_t>(p.window[0] * p.window[1] * p.window[2]);
    const int useful = useful_threads(std::min(threads, threads_), windows, windows * p.x.dims[1], taps);
    parallel_ranges(useful, windows, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t w = begin; w < end; ++w) {
        const std::int64_t row = w / p.out[2], plane = row / p.out[1];
        pool(p, static_cast<const float*>(pointers[slots_[0]]), static_cast<float*>(pointers[slots_[1]]),
             static_cast<Index*>(pointers[slots_[2]]), plane / p.out[0], {plane % p.out[0], row % p.out[1], w % p.out[2]});
      }
    });
  }

  Pooling pooling_;
  std::array<std::size_t, 3> slots_{};  ///< of x, y and the indices among the pointers
  int threads_;
};

class MaxPoolEngine final : public Engine {
 public:
  std::string_view name() const override { return "HOST_MAX_POOL_ENGINE"; }

  std::optional<std::string> refuses(const Graph& graph) const override {
    const std::optional<std::string> refusal = refusal_of([&] { read_pooling(widened(graph)); });
    return refusal ? refusal : refuses_conversions(graph);
  }

  std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions& options) const override {
    const auto build_wide = [](const Graph& wide, const PlanOptions& given) { return std::make_unique<MaxPoolPlan>(wide, given.threads); };
    return has_narrow_tensors(graph) ? build_widened(graph, options, build_wide) : build_wide(graph, options);
  }
};

}  // namespace

const Engine& max_pool_engine() {
  static const MaxPoolEngine engine;
  return engine;
}

}  // namespace hipdnn_port
