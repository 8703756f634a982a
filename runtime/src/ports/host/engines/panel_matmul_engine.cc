// HOST_PANEL_MATMUL_ENGINE: a matmul whose right operand is one matrix of float16 or bfloat16, with an epilogue of pointwise operations.
// Weights stay in 16 bits and are widened on their way: in registers for few rows, as in a step of text generation, which takes as long as
// the weights take to be read; in pieces that stay in cache for more. All sums are of float32. Constants are packed once, others in every run.
#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>

#include "frontend/engine.h"
#include "frontend/status.h"
#include "kernels_tile.h"
#include "matmul_epilogue.h"
#include "matmul_rows.h"
#include "one_matrix_matmul.h"
#include "packed_memory.h"
#include "panel_weights.h"
#include "rowwise_engine.h"
#include "rowwise_parallel.h"
#include "rowwise_program.h"

namespace hipdnn_port {
namespace {

/// Depth at once of many rows: widened weights, and the rows that they meet, stay in the second-level cache.
constexpr std::int64_t kDepthRun = 512;
/// Groups of rows, and panels, of one task at most: their sums stay there too.
constexpr std::int64_t kTaskGroups = 24;
constexpr std::int64_t kTaskPanels = MatmulResult::kMostColumns / kPanelColumns;
/// Groups of few rows at most.
constexpr std::int64_t kFewGroups = 3;
/// Rows of a group at most, and their depth at once on their way to the workspace: on the stack.
constexpr std::int64_t kGroupRows = 12;
constexpr std::int64_t kLoadRun = 256;
/// Panels of few rows beside each other at most.
constexpr std::int64_t kMostStreams = 4;

std::int64_t bytes_of_floats(std::int64_t count) { return whole_lines(count * static_cast<std::int64_t>(sizeof(float))); }

OneMatrixMatmul read_panel_matmul(const Graph& graph) {
  OneMatrixMatmul found = read_one_matrix_matmul(graph);
  const Tensor& b = graph.tensor(found.b);
  if (b.dtype != HIPDNN_DATA_HALF && b.dtype != HIPDNN_DATA_BFLOAT16) throw Refusal(text("the right operand is ", describe(b), ", expected 16-bit floats"));
  return found;
}

class PanelMatmulPlan final : public Plan {
 public:
  PanelMatmulPlan(const Graph& graph, const OneMatrixMatmul& read, const PlanOptions& options)
      : kernels_(tile_kernels().panels), weights_(graph.tensor(read.b)), threads_(std::max(1, options.threads)) {
    uids_ = pointer_uids(graph);
    weights_pointer_ = pointer_of(graph, read.b, uids_);
    const auto constant = options.constants.find(weights_.uid);
    is_packed_ = constant != options.constants.end();
    packed_ = is_packed_ ? packed_panels(weights_, constant->second, threads_) : std::make_shared<PanelWeights>(unplaced_panels(weights_));
    const std::vector<std::int64_t>& dims = graph.tensor(read.epilogue.result).dims;
    columns_ = dims.back();
    rows_ = std::accumulate(dims.begin(), dims.end() - 1, std::int64_t{1}, std::multiplies<>());
    std::vector<std::int64_t> left = dims;
    left.back() = weights_.dims[weights_.dims.size() - 2];
    left_depth_ = left.back();
    left_ = {Rows(graph.tensor(read.a), left), pointer_of(graph, read.a, uids_)};
    result_.emplace(graph, read.epilogue, uids_);
    narrow_ = weights_.dtype == HIPDNN_DATA_HALF ? kernels_.halves : kernels_.bfloats;
    divide();
    lay_out_workspace();
  }

  std::string describe() const override {
    return text("matmul by panels of ", weights_.dtype == HIPDNN_DATA_HALF ? "f16, " : "bf16, ", tile_kernels().isa,
                result_->has_steps() ? " + epilogue" : "");
  }

  void execute(void* const* pointers, void* workspace, const Launch& launch) const override {
    auto* const scratch = static_cast<std::byte*>(workspace);
    const int threads = std::min(threads_, launch.threads);
    const PanelWeights packed = packed_now(pointers, scratch, threads);
    auto* const left = reinterpret_cast<float*>(scratch);
    load_left(pointers, left, threads);
    const int useful = useful_threads(threads, tasks_, rows_ * packed.bytes(), 1);
    parallel_ranges(useful, tasks_, [&](std::int64_t first, std::int64_t last, int thread) {
      if (is_few()) return multiply_few(pointers, packed, left, first, last);
      auto* const own = reinterpret_cast<float*>(scratch + own_at_ + thread * own_bytes_);
      for (std::int64_t task = first; task < last; ++task) multiply_task(pointers, packed, left, task, own);
    });
  }

 private:
  /// Groups of nearly the same number of rows; tasks, all threads alike.
  void divide() {
    groups_ = parts_of(rows_, kernels_.rows);
    group_rows_ = parts_of(rows_, groups_);
    groups_ = parts_of(rows_, group_rows_);
    tasks_ = packed_->panels;
    if (is_few()) return;
    row_tasks_ = parts_of(groups_, kTaskGroups);
    task_groups_ = parts_of(groups_, row_tasks_);
    const std::int64_t most = parts_of(packed_->panels, kernels_.panels);
    const std::int64_t wanted = parts_of(parts_of(packed_->panels, kTaskPanels), threads_) * threads_;
    task_panels_ = parts_of(most, std::min(most, wanted)) * kernels_.panels;
    tasks_ = row_tasks_ * parts_of(packed_->panels, task_panels_);
  }

  /// The left operand by groups; where there are many, for each thread sums and widened weights; weights that are packed in every run.
  void lay_out_workspace() {
    own_at_ = bytes_of_floats(rows_ * packed_->depth);
    if (!is_few()) {
      sums_bytes_ = bytes_of_floats(task_groups_ * group_rows_ * task_panels_ * kPanelColumns);
      own_bytes_ = sums_bytes_ + bytes_of_floats(kernels_.panels * kDepthRun * kPanelColumns);
    }
    packed_at_ = own_at_ + threads_ * own_bytes_;
    workspace_bytes_ = packed_at_ + (is_packed_ ? 0 : whole_lines(packed_->bytes()));
  }

  PanelWeights packed_now(void* const* pointers, std::byte* scratch, int threads) const {
    PanelWeights packed = *packed_;
    if (is_packed_) return packed;
    packed.elements = scratch + packed_at_;
    pack_panels(packed, weights_, pointers[weights_pointer_], threads);
    return packed;
  }

  bool is_few() const { return groups_ <= kFewGroups; }
  std::int64_t rows_of(std::int64_t group) const { return std::min(group_rows_, rows_ - group * group_rows_); }
  const float* left_of(const float* left, std::int64_t group) const { return left + group * group_rows_ * packed_->depth; }

  /// Rows of a group lie element by element beside each other.
  void load_left(void* const* pointers, float* left, int threads) const {
    const std::int64_t runs = parts_of(packed_->depth, kLoadRun);
    parallel_ranges(useful_threads(threads, groups_ * runs, rows_ * packed_->depth, 2), groups_ * runs,
                    [&](std::int64_t first, std::int64_t last, int) {
                      for (std::int64_t i = first; i < last; ++i) load_run(pointers, left, i / runs, i % runs * kLoadRun);
                    });
  }

  void load_run(void* const* pointers, float* left, std::int64_t group, std::int64_t first) const {
    alignas(kLineBytes) std::array<float, kGroupRows * kLoadRun> values;  // NOLINT: filled as far as it is read
    const std::int64_t rows = rows_of(group);
    const std::int64_t count = std::min(kLoadRun, packed_->depth - first);
    const std::int64_t filled = std::clamp<std::int64_t>(left_depth_ - first, 0, count);
    float* const to = left + group * group_rows_ * packed_->depth + first * rows;
    for (std::int64_t r = 0; r < rows; ++r) {
      float* const row = rows == 1 ? to : values.data() + r * kLoadRun;
      left_->rows.load(pointers[left_->pointer], group * group_rows_ + r, first, filled, row);
      std::fill(row + filled, row + count, 0.0F);
    }
    if (rows == 1) return;
    TileArgs transpose{.rows = count, .cols = rows, .dst = to, .dst_row = rows};
    transpose.src[0] = values.data();
    transpose.src_row[0] = 1;
    transpose.src_col[0] = kLoadRun;
    find_conversion(HIPDNN_DATA_FLOAT, HIPDNN_DATA_FLOAT)(transpose);
  }

  /// Panels first to last for all groups.
  void multiply_few(void* const* pointers, const PanelWeights& packed, const float* left, std::int64_t first, std::int64_t last) const {
    alignas(kLineBytes) std::array<float, kGroupRows * kMostStreams * kPanelColumns> sums;  // NOLINT: the product writes what is read
    const std::int64_t most = std::max<std::int64_t>(1, narrow_.streams / rows_);
    std::int64_t panels = 1;
    for (std::int64_t panel = first; panel < last; panel += panels) {
      panels = last - panel >= most ? most : 1;
      for (std::int64_t group = 0; group < groups_; ++group) {
        const std::int64_t rows = rows_of(group);
        narrow_.product({.rows = rows,
                         .panels = panels,
                         .depth = packed.depth,
                         .a = left_of(left, group),
                         .weights = packed.row(panel, 0),
                         .panel = packed.panel_elements(),
                         .c = sums.data(),
                         .c_row = panels * kPanelColumns});
        finish(pointers, group * group_rows_, rows, panel, panels, sums.data(), panels * kPanelColumns);
      }
    }
  }

  /// Panels side by side, and the part of their rows that is multiplied at once.
  struct Piece {
    std::int64_t panel, panels, first, depth;
  };

  /// Piece number `index` of the weights of a task: all panels, then the next rows.
  Piece piece_of(std::int64_t index, std::int64_t first_panel, std::int64_t panels) const {
    const std::int64_t in_row = parts_of(panels, kernels_.panels);
    const std::int64_t panel = index % in_row * kernels_.panels, first = index / in_row * kDepthRun;
    return {first_panel + panel, std::min(kernels_.panels, panels - panel), first, std::min(kDepthRun, packed_->depth - first)};
  }

  /// Some groups and some panels. `own` is the thread's memory.
  void multiply_task(void* const* pointers, const PanelWeights& packed, const float* left, std::int64_t task, float* own) const {
    const std::int64_t first_group = task % row_tasks_ * task_groups_;
    const std::int64_t last_group = std::min(first_group + task_groups_, groups_);
    const std::int64_t first_panel = task / row_tasks_ * task_panels_;
    const std::int64_t panels = std::min(task_panels_, packed.panels - first_panel);
    const std::int64_t pieces = parts_of(panels, kernels_.panels) * parts_of(packed.depth, kDepthRun);
    float* const wide = own + sums_bytes_ / static_cast<std::int64_t>(sizeof(float));
    const std::int64_t c_row = task_panels_ * kPanelColumns;
    for (std::int64_t index = 0; index < pieces; ++index) {
      const Piece piece = piece_of(index, first_panel, panels);
      widen(packed, piece, wide);
      for (std::int64_t group = first_group; group < last_group; ++group) {
        if (index + 1 < pieces) fetch(packed, piece_of(index + 1, first_panel, panels), group - first_group, last_group - first_group);
        kernels_.product({.rows = rows_of(group),
                         .panels = piece.panels,
                         .depth = piece.depth,
                         .a = left_of(left, group) + piece.first * rows_of(group),
                         .weights = wide,
                         .panel = piece.depth * kPanelColumns,
                         .c = own + (group - first_group) * group_rows_ * c_row + (piece.panel - first_panel) * kPanelColumns,
                         .c_row = c_row,
                         .accumulates = piece.first > 0});
      }
    }
    const std::int64_t first_row = first_group * group_rows_;
    finish(pointers, first_row, std::min(last_group * group_rows_, rows_) - first_row, first_panel, panels, own, c_row);
  }

  void widen(const PanelWeights& packed, const Piece& piece, float* to) const {
    for (std::int64_t i = 0; i < piece.panels; ++i) {
      const std::int64_t count = piece.depth * kPanelColumns;
      narrow_.widen(packed.row(piece.panel + i, piece.first), to + i * count, count);
    }
  }

  /// Asks for one of some parts of a piece: memory and arithmetic work at the same time.
  static void fetch(const PanelWeights& packed, const Piece& piece, std::int64_t part, std::int64_t parts) {
    const std::int64_t lines = piece.depth * kPanelColumns * packed.element_bytes / kLineBytes;
    for (std::int64_t i = 0; i < piece.panels; ++i) {
      const std::byte* const from = packed.row(piece.panel + i, piece.first);
      for (std::int64_t line = lines * part / parts; line < lines * (part + 1) / parts; ++line) __builtin_prefetch(from + line * kLineBytes, 0, 2);
    }
  }

  void finish(void* const* pointers, std::int64_t first_row, std::int64_t rows, std::int64_t panel, std::int64_t panels, float* sums,
              std::int64_t sums_row) const {
    const std::int64_t first = panel * kPanelColumns;
    const std::int64_t count = std::min(panels * kPanelColumns, columns_ - first);
    result_->finish(pointers, first_row, rows, first, count, sums, sums_row);
  }

  PanelKernels kernels_;
  NarrowPanels narrow_{};
  Tensor weights_;
  std::size_t weights_pointer_ = 0;
  bool is_packed_ = false;
  std::shared_ptr<const PanelWeights> packed_;  ///< without a place where the weights are no constant
  std::optional<OperandRows> left_;
  std::optional<MatmulResult> result_;
  int threads_;
  std::int64_t rows_ = 0, columns_ = 0, left_depth_ = 0;
  std::int64_t groups_ = 0, group_rows_ = 0;
  std::int64_t tasks_ = 0, row_tasks_ = 0, task_groups_ = 0, task_panels_ = 0;
  std::int64_t own_at_ = 0, own_bytes_ = 0, sums_bytes_ = 0, packed_at_ = 0;
};

class PanelMatmulEngine final : public Engine {
 public:
  std::string_view name() const override { return "HOST_PANEL_MATMUL_ENGINE"; }

  std::optional<std::string> refuses(const Graph& graph) const override {
    return refusal_of([&] { read_panel_matmul(graph); });
  }

  std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions& options) const override {
    return std::make_unique<PanelMatmulPlan>(graph, read_panel_matmul(graph), options);
  }
};

}  // namespace

const Engine& panel_matmul_engine() {
  static const PanelMatmulEngine engine;
  return engine;
}

}  // namespace hipdnn_port
