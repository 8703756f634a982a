// HOST_GROUPS_ENGINE: a convolution of float32 in groups of few channels, channels-last, with an epilogue of pointwise operations. Sums of some
// pixels of a line stay in registers while a group's taps and channels go by.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "channels_last_convolution.h"
#include "frontend/engine.h"
#include "frontend/status.h"
#include "kernels_tile.h"
#include "matmul_epilogue.h"
#include "packed_memory.h"
#include "rowwise_engine.h"
#include "rowwise_parallel.h"
#include "rowwise_program.h"
#include "shared_forms.h"

namespace hipdnn_port {

const Engine& onednn_engine();

namespace {

/// For groups of more channels, oneDNN's kernels are as fast.
constexpr std::int64_t kMostChannels = 8;
/// Results at once between products and epilogue: they stay in the first-level cache.
constexpr std::int64_t kLineValues = 4096;

struct GroupedConvolution : ChannelsLastConvolution {
  std::int64_t group_channels = 0, group_results = 0, taps = 0;

  std::int64_t panel() const { return taps * group_channels * kGroupLanes; }
};

GroupedConvolution read_groups(const Graph& graph) {
  GroupedConvolution found{read_channels_last_convolution(graph)};
  const Tensor& w = graph.tensor(found.w);
  const std::int64_t groups = found.channels / w.dims[1];
  found.group_channels = w.dims[1], found.group_results = found.result_channels / groups, found.taps = w.dims[2] * w.dims[3];
  if (groups == 1) throw Refusal("has no groups");
  if (found.group_channels % kGroupChannels != 0 || found.group_channels > kMostChannels) {
    throw Refusal(text("groups of ", found.group_channels, " channels, expected multiples of ", kGroupChannels, " up to ", kMostChannels));
  }
  if (found.group_results % kGroupLanes != 0) throw Refusal(text("groups of ", found.group_results, " results, expected multiples of ", kGroupLanes));
  return found;
}

/// [results / kGroupLanes][tap, channel, kGroupLanes].
struct GroupWeights {
  std::shared_ptr<void> memory;
};

std::shared_ptr<GroupWeights> packed(const GroupedConvolution& read, const Tensor& w, const float* from, int threads) {
  const std::int64_t panels = read.result_channels / kGroupLanes;
  std::shared_ptr<void> memory = packed_memory(static_cast<std::size_t>(panels * read.panel()) * sizeof(float));
  parallel_ranges(threads, panels, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t at = first; at < last; ++at) {
      float* to = static_cast<float*>(memory.get()) + at * read.panel();
      for (std::int64_t tap = 0; tap < read.taps; ++tap) {
        const float* const place = from + tap / w.dims[3] * w.strides[2] + tap % w.dims[3] * w.strides[3];
        for (std::int64_t c = 0; c < read.group_channels; ++c) {
          for (std::int64_t n = 0; n < kGroupLanes; ++n) *to++ = place[(at * kGroupLanes + n) * w.strides[0] + c * w.strides[1]];
        }
      }
    }
  });
  return std::make_shared<GroupWeights>(GroupWeights{std::move(memory)});
}

/// Thread-safe; plans for the same constant share what they hold.
std::shared_ptr<const GroupWeights> shared_weights(const GroupedConvolution& read, const Tensor& w, const void* from, int threads) {
  using Dims = std::vector<std::int64_t>;
  static SharedForms<std::tuple<const void*, Dims, Dims>, GroupWeights> forms;
  return forms.find({from, w.dims, w.strides}, [&] { return packed(read, w, static_cast<const float*>(from), threads); });
}

class GroupsPlan final : public Plan {
 public:
  GroupsPlan(const Graph& graph, GroupedConvolution read, const void* weights, const PlanOptions& options)
      : kernels_(tile_kernels().groups), read_(std::move(read)), threads_(std::max(1, options.threads)), columns_(graph.tensor(read_.w).dims[3]) {
    uids_ = pointer_uids(graph);
    x_pointer_ = pointer_of(graph, read_.x, uids_);
    x_strides_ = graph.tensor(read_.x).strides;
    weights_ = shared_weights(read_, graph.tensor(read_.w), weights, threads_);
    result_.emplace(read_.graph, read_.epilogue, uids_);
    zeros_.resize(static_cast<std::size_t>(read_.channels));
    lines_ = read_.images * read_.result_height;
    const std::int64_t most = std::min(MatmulResult::kMostColumns, kLineValues / read_.result_width / kGroupLanes * kGroupLanes);
    chunk_ = std::min(std::max(most, kGroupLanes), read_.result_channels);
    own_bytes_ = whole_lines(read_.result_width * (read_.taps * static_cast<std::int64_t>(sizeof(const float*)) + chunk_ * static_cast<std::int64_t>(sizeof(float))));
    workspace_bytes_ = threads_ * own_bytes_;
  }

  std::string describe() const override {
    return text("groups of ", read_.group_channels, " channels, ", tile_kernels().isa, result_->has_steps() ? " + epilogue" : "");
  }

  void execute(void* const* pointers, void* workspace, const Launch& launch) const override {
    parallel_ranges(std::min(threads_, launch.threads), lines_, [&](std::int64_t first, std::int64_t last, int thread) {
      auto* const pixels = reinterpret_cast<const float**>(static_cast<char*>(workspace) + thread * own_bytes_);
      auto* const values = reinterpret_cast<float*>(pixels + read_.taps * read_.result_width);
      for (std::int64_t line = first; line < last; ++line) run(pointers, line, pixels, values);
    });
  }

 private:
  void run(void* const* pointers, std::int64_t line, const float** pixels, float* values) const {
    find_pixels(static_cast<const float*>(pointers[x_pointer_]), line, pixels);
    const std::int64_t width = read_.result_width;
    const std::int64_t strips = parts_of(width, kGroupPixels);
    const auto* const weights = static_cast<const float*>(weights_->memory.get());
    for (std::int64_t from = 0; from < read_.result_channels; from += chunk_) {
      const std::int64_t size = std::min(chunk_, read_.result_channels - from);
      for (std::int64_t n = 0; n < size; n += kGroupLanes) {
        for (std::int64_t strip = 0; strip < strips; ++strip) {
          const std::int64_t first = width * strip / strips, count = width * (strip + 1) / strips - first;
          kernels_[static_cast<std::size_t>(count - 1)]({.taps = read_.taps,
                                                         .channels = read_.group_channels,
                                                         .pixels = pixels + first,
                                                         .pixel_row = width,
                                                         .offset = (from + n) / read_.group_results * read_.group_channels,
                                                         .weights = weights + (from + n) / kGroupLanes * read_.panel(),
                                                         .results = values + first * chunk_ + n,
                                                         .result_row = chunk_});
        }
      }
      result_->finish(pointers, line * width, width, from, size, values, chunk_);
    }
  }

  /// Where the taps of the results of a line are; zeros outside the image.
  void find_pixels(const float* x, std::int64_t line, const float** pixels) const {
    const float* const image = x + line / read_.result_height * x_strides_[0];
    for (std::int64_t tap = 0; tap < read_.taps; ++tap) {
      const std::int64_t row = line % read_.result_height * read_.steps[0] - read_.above + tap / columns_ * read_.dilations[0];
      for (std::int64_t i = 0; i < read_.result_width; ++i) {
        const std::int64_t column = i * read_.steps[1] - read_.left + tap % columns_ * read_.dilations[1];
        const bool is_inside = row >= 0 && row < read_.height && column >= 0 && column < read_.width;
        *pixels++ = is_inside ? image + row * x_strides_[2] + column * x_strides_[3] : zeros_.data();
      }
    }
  }

  GroupKernels kernels_;
  GroupedConvolution read_;
  int threads_;
  std::int64_t columns_;  ///< of the filter
  std::size_t x_pointer_ = 0;
  std::vector<std::int64_t> x_strides_;
  std::shared_ptr<const GroupWeights> weights_;
  std::optional<MatmulResult> result_;
  std::vector<float> zeros_;  ///< a pixel outside the image
  std::int64_t lines_ = 0;
  std::int64_t chunk_ = 0;  ///< channels of a line between products and epilogue
  std::int64_t own_bytes_ = 0;
};

class GroupsEngine final : public Engine {
 public:
  std::string_view name() const override { return "HOST_GROUPS_ENGINE"; }

  std::optional<std::string> refuses(const Graph& graph) const override {
    return refusal_of([&] { read_groups(graph); });
  }

  /// Filters that are no constants would be packed in every run.
  std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions& options) const override {
    GroupedConvolution read = read_groups(graph);
    const auto weights = options.constants.find(graph.tensor(read.w).uid);
    if (weights == options.constants.end()) return onednn_engine().build(graph, options);
    return std::make_unique<GroupsPlan>(graph, std::move(read), weights->second, options);
  }
};

}  // namespace

const Engine& groups_engine() {
  static const GroupsEngine engine;
  return engine;
}

}  // namespace hipdnn_port
