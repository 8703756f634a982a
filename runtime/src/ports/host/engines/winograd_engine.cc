// HOST_WINOGRAD_ENGINE: a convolution of float32 with 3 x 3 taps in steps of one, channels-last, by Winograd's F(2 x 2, 3 x 3), with an epilogue of
// pointwise operations: 16 products in the place of 36. Sums round about twice as often as those of a direct convolution.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "frontend/engine.h"
#include "frontend/status.h"
#include "kernels_tile.h"
#include "matmul_epilogue.h"
#include "packed_memory.h"
#include "rowwise_engine.h"
#include "rowwise_parallel.h"
#include "rowwise_program.h"
#include "shared_forms.h"
#include "winograd_graph.h"

namespace hipdnn_port {

const Engine& onednn_engine();

namespace {

/// Tiles whose numbers stay in the second-level cache, or so many that weights are read for enough of them.
constexpr std::int64_t kBlockTiles = 64;

/// The numbers of a filter: G g G^T with G = [1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1].
std::array<float, kWinogradNumbers> numbers_of(const float* taps, std::int64_t row, std::int64_t column) {
  const auto line = [](float a, float b, float c) { return std::array<float, 4>{a, 0.5F * (a + b + c), 0.5F * (a - b + c), c}; };
  std::array<std::array<float, 4>, 3> columns{};
  for (std::int64_t x = 0; x < 3; ++x) columns[static_cast<std::size_t>(x)] = line(taps[x * column], taps[row + x * column], taps[2 * row + x * column]);
  std::array<float, kWinogradNumbers> numbers{};
  for (std::size_t y = 0; y < 4; ++y) std::ranges::copy(line(columns[0][y], columns[1][y], columns[2][y]), numbers.begin() + static_cast<std::ptrdiff_t>(4 * y));
  return numbers;
}

/// [number][panel][channel, kPanelColumns].
struct WinogradWeights {
  std::shared_ptr<void> memory;
  const float* of(std::int64_t number, std::int64_t panel) const {
    return static_cast<const float*>(memory.get()) + (number * panels + panel) * channels * kPanelColumns;
  }
  std::int64_t panels = 0, channels = 0;
};

WinogradWeights transformed(const Tensor& w, const float* from, int threads) {
  WinogradWeights made{nullptr, w.dims[0] / kPanelColumns, w.dims[1]};
  made.memory = packed_memory(static_cast<std::size_t>(kWinogradNumbers * w.dims[0] * w.dims[1]) * sizeof(float));
  parallel_ranges(threads, made.panels, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t at = first * kPanelColumns; at < last * kPanelColumns; ++at) {
      for (std::int64_t c = 0; c < made.channels; ++c) {
        const auto numbers = numbers_of(from + at * w.strides[0] + c * w.strides[1], w.strides[2], w.strides[3]);
        for (std::int64_t i = 0; i < kWinogradNumbers; ++i) {
          const_cast<float*>(made.of(i, at / kPanelColumns))[c * kPanelColumns + at % kPanelColumns] = numbers[static_cast<std::size_t>(i)];
        }
      }
    }
  });
  return made;
}

/// Thread-safe; plans for the same constant share what they hold.
std::shared_ptr<const WinogradWeights> shared_weights(const Tensor& w, const void* from, int threads) {
  using Dims = std::vector<std::int64_t>;
  static SharedForms<std::tuple<const void*, Dims, Dims>, WinogradWeights> forms;
  return forms.find({from, w.dims, w.strides}, [&] { return std::make_shared<WinogradWeights>(transformed(w, static_cast<const float*>(from), threads)); });
}

class WinogradPlan final : public Plan {
 public:
  WinogradPlan(const Graph& graph, WinogradConvolution read, const void* weights, const PlanOptions& options)
      : kernels_(tile_kernels().winograd), read_(std::move(read)), threads_(std::max(1, options.threads)) {
    uids_ = pointer_uids(graph);
    x_pointer_ = pointer_of(graph, read_.x, uids_);
    x_strides_ = graph.tensor(read_.x).strides;
    weights_ = shared_weights(graph.tensor(read_.w), weights, threads_);
    result_.emplace(read_.graph, read_.epilogue, uids_);
    zeros_.resize(static_cast<std::size_t>(read_.channels));
    const std::int64_t rounds = parts_of(parts_of(read_.tiles(), kBlockTiles), threads_);
    const bool has_more_weights = read_.channels * read_.result_channels > parts_of(read_.tiles(), threads_) * (read_.channels + read_.result_channels);
    divides_weights_ = threads_ > 1 && rounds == 1 && has_more_weights;
    blocks_ = divides_weights_ ? 1 : std::min(rounds * threads_, read_.tiles());
    block_tiles_ = parts_of(read_.tiles(), blocks_);
    own_floats_ = block_tiles_ * kWinogradNumbers * (read_.channels + read_.result_channels);
    workspace_bytes_ = (divides_weights_ ? 1 : threads_) * own_floats_ * static_cast<std::int64_t>(sizeof(float));
  }

  std::string describe() const override { return text("winograd 2 x 2, ", tile_kernels().isa, result_->has_steps() ? " + epilogue" : ""); }

  void execute(void* const* pointers, void* workspace, const Launch& launch) const override {
    const int threads = std::min(threads_, launch.threads);
    auto* const all = static_cast<float*>(workspace);
    if (divides_weights_) return divide_weights(pointers, all, threads);
    parallel_ranges(threads, blocks_, [&](std::int64_t first, std::int64_t last, int thread) {
      float* const numbers = all + thread * own_floats_;
      for (std::int64_t block = first; block < last; ++block) {
        const std::int64_t begin = read_.tiles() * block / blocks_, end = read_.tiles() * (block + 1) / blocks_;
        transform(pointers, begin, begin, end, numbers);
        multiply(0, kWinogradNumbers * weights_->panels, end - begin, numbers);
        finish(pointers, begin, begin, end, numbers);
      }
    });
  }

 private:
  /// Each thread reads a part of the weights, not all: where there are few tiles, that saves more than waiting for the others costs.
  void divide_weights(void* const* pointers, float* numbers, int threads) const {
    const std::int64_t tiles = read_.tiles();
    parallel_ranges(threads, tiles, [&](std::int64_t first, std::int64_t last, int) { transform(pointers, 0, first, last, numbers); });
    parallel_ranges(threads, kWinogradNumbers * weights_->panels, [&](std::int64_t first, std::int64_t last, int) { multiply(first, last, tiles, numbers); });
    parallel_ranges(threads, tiles, [&](std::int64_t first, std::int64_t last, int) { finish(pointers, 0, first, last, numbers); });
  }

  struct Place {
    std::int64_t image, row, column;  ///< of the first result
  };

  Place place_of(std::int64_t tile) const {
    const std::int64_t line = tile / read_.tile_columns();
    return {line / read_.tile_rows(), line % read_.tile_rows() * 2, tile % read_.tile_columns() * 2};
  }

  /// Tiles first to last of a block that begins with tile `begin`.
  void transform(void* const* pointers, std::int64_t begin, std::int64_t first, std::int64_t last, float* numbers) const {
    const auto* const x = static_cast<const float*>(pointers[x_pointer_]);
    for (std::int64_t tile = first; tile < last; ++tile) transform_tile(x, tile, numbers + (tile - begin) * read_.channels);
  }

  void transform_tile(const float* x, std::int64_t tile, float* to) const {
    const Place place = place_of(tile);
    WinogradInputArgs args{.channels = read_.channels, .to = to, .step = block_tiles_ * read_.channels};
    for (std::int64_t i = 0; i < kWinogradNumbers; ++i) {
      const std::int64_t row = place.row - read_.above + i / 4, column = place.column - read_.left + i % 4;
      const bool is_inside = row >= 0 && row < read_.height && column >= 0 && column < read_.width;
      args.pixels[static_cast<std::size_t>(i)] =
          is_inside ? x + place.image * x_strides_[0] + row * x_strides_[2] + column * x_strides_[3] : zeros_.data();
    }
    kernels_.input(args);
  }

  /// Panels first to last, counted through all numbers. The weights of one stay in the first-level cache, the tiles' numbers in the second.
  void multiply(std::int64_t first_panel, std::int64_t last_panel, std::int64_t tiles, float* numbers) const {
    const std::int64_t groups = parts_of(tiles, kernels_.rows);
    for (std::int64_t index = first_panel; index < last_panel; ++index) {
      const std::int64_t i = index / weights_->panels, panel = index % weights_->panels;
      for (std::int64_t group = 0; group < groups; ++group) {
        const std::int64_t first = tiles * group / groups, last = tiles * (group + 1) / groups;
        kernels_.product({.rows = last - first,
                          .depth = read_.channels,
                          .a = numbers + (i * block_tiles_ + first) * read_.channels,
                          .a_row = read_.channels,
                          .weights = weights_->of(i, panel),
                          .c = products_of(numbers) + (i * block_tiles_ + first) * read_.result_channels + panel * kPanelColumns,
                          .c_row = read_.result_channels});
      }
    }
  }

  /// The products lie behind a block's numbers.
  float* products_of(float* numbers) const { return numbers + block_tiles_ * kWinogradNumbers * read_.channels; }

  void finish(void* const* pointers, std::int64_t begin, std::int64_t first, std::int64_t last, float* numbers) const {
    for (std::int64_t tile = first; tile < last; ++tile) finish_tile(pointers, tile, products_of(numbers) + (tile - begin) * read_.result_channels);
  }

  void finish_tile(void* const* pointers, std::int64_t tile, const float* products) const {
    const Place place = place_of(tile);
    alignas(64) std::array<std::array<float, MatmulResult::kMostColumns>, 4> results;  // NOLINT: filled as far as it is read
    for (std::int64_t first = 0; first < read_.result_channels; first += MatmulResult::kMostColumns) {
      const std::int64_t count = std::min(MatmulResult::kMostColumns, read_.result_channels - first);
      kernels_.output({products + first, block_tiles_ * read_.result_channels, count, {results[0].data(), results[1].data(), results[2].data(), results[3].data()}});
      for (std::int64_t i = 0; i < 4; ++i) {
        const std::int64_t row = place.row + i / 2, column = place.column + i % 2;
        if (row >= read_.result_height || column >= read_.result_width) continue;
        const std::int64_t pixel = (place.image * read_.result_height + row) * read_.result_width + column;
        result_->finish(pointers, pixel, 1, first, count, results[static_cast<std::size_t>(i)].data(), 0);
      }
    }
  }

  WinogradKernels kernels_;
  WinogradConvolution read_;
  int threads_;
  bool divides_weights_ = false;
  std::size_t x_pointer_ = 0;
  std::vector<std::int64_t> x_strides_;
  std::shared_ptr<const WinogradWeights> weights_;
  std::optional<MatmulResult> result_;
  std::vector<float> zeros_;  ///< a pixel outside the image
  std::int64_t blocks_ = 0, block_tiles_ = 0, own_floats_ = 0;
};

class WinogradEngine final : public Engine {
 public:
  std::string_view name() const override { return "HOST_WINOGRAD_ENGINE"; }

  std::optional<std::string> refuses(const Graph& graph) const override {
    return refusal_of([&] { read_winograd(graph); });
  }

  /// Filters that are no constants would be transformed in every run.
  std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions& options) const override {
    WinogradConvolution read = read_winograd(graph);
    const auto weights = options.constants.find(graph.tensor(read.w).uid);
    if (weights == options.constants.end()) return onednn_engine().build(graph, options);
    return std::make_unique<WinogradPlan>(graph, std::move(read), weights->second, options);
  }
};

}  // namespace

const Engine& winograd_engine() {
  static const WinogradEngine engine;
  return engine;
}

}  // namespace hipdnn_port
