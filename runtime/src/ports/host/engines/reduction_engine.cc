// HOST_REDUCTION_ENGINE: one reduction over any axes, with pointwise nodes before and after it. The reduced axes come in chunks that stay in
// cache; partial results are combined in double or int64.
#include <algorithm>

#include "frontend/engine.h"
#include "frontend/status.h"
#include "reduction_accumulator.h"
#include "rowwise_engine.h"
#include "rowwise_parallel.h"
#include "rowwise_tiles.h"

namespace hipdnn_port {
namespace {

RowProgram prepared_reduction(const Graph& graph) {
  RowProgram program = lower_rowwise(graph);
  if (program.fold_count() != 1) throw Refusal(text("has ", program.fold_count(), " reductions, expected one"));
  if (program.broadcasts_back()) {
    throw Refusal("the reduction's result is spread back over the reduced axes; HOST_ROWWISE_ENGINE takes such graphs");
  }
  fuse_steps(program);
  order_before_folds(program);
  return program;
}

const RowStep& fold_step(const RowProgram& program) {
  return *std::find_if(program.steps.begin(), program.steps.end(), [](const RowStep& step) { return step.is_fold; });
}

class ReductionPlan final : public Plan {
 public:
  ReductionPlan(const Graph& graph, const RowProgram& program, int threads)
      : tiles_(program, wanted_tile_elements(program, threads), false),
        accumulator_(fold_step(program).fold, program.values[static_cast<std::size_t>(fold_step(program).args[0])].reg),
        elements_(program.size()),
        threads_(std::max(1, threads)) {
    const std::vector<TileInstruction>& list = tiles_.instructions();
    const auto fold = std::find_if(list.begin(), list.end(), [](const TileInstruction& i) { return i.kind == TileInstruction::Kind::fold; });
    fold_ = static_cast<std::size_t>(fold - list.begin());
    const std::vector<TileLoop>& loops = tiles_.tiling().loops;
    kept_loops_ = static_cast<std::size_t>(std::find_if(loops.begin(), loops.end(), [](const TileLoop& loop) { return loop.reduced; }) - loops.begin());
    kept_tiles_ = tiles_.tile_count(0, kept_loops_);
    reduced_tiles_ = tiles_.tile_count(kept_loops_, loops.size());
    thread_bytes_ = tiles_.scratch_bytes() + accumulator_bytes(results(tiles_.start()));
    uids_ = pointer_uids(graph);
    workspace_bytes_ = thread_bytes_ * threads_;
  }

  std::string describe() const override {
    return text("reduction along ", tiles_.tiling().folds_rows ? "rows" : "columns", ": ", tiles_.instructions().size(),
                " instruction(s) on tiles of ", tiles_.tiling().rows.most(), " x ", tiles_.tiling().cols.most(), ", ", tile_kernels().isa);
  }

  void execute(void* const* pointers, void* workspace, const Launch& launch) const override {
    const int threads = launch.threads;
    auto* scratch = static_cast<std::byte*>(workspace);
    const std::int64_t tiles = kept_tiles_ * reduced_tiles_;
    const int useful = useful_threads(std::min(threads, threads_), tiles, elements_, tiles_.instructions().size());
    if (kept_tiles_ < useful) return share_reduction(pointers, scratch, useful);
    parallel_ranges(useful, kept_tiles_, [&](std::int64_t first, std::int64_t last, int thread) {
      for (std::int64_t kept = first; kept < last; ++kept) reduce_tile(kept, pointers, scratch + thread * thread_bytes_);
    });
  }

 private:
  const TileSlot& partial() const { return tiles_.instructions()[fold_].dst; }
  /// Results of the reduction in one tile.
  std::int64_t results(const TileState& state) const {
    return (partial().rows ? tiles_.rows_of(state) : 1) * (partial().cols ? tiles_.cols_of(state) : 1);
  }
  std::byte* accumulators(std::byte* scratch) const { return scratch + tiles_.scratch_bytes(); }

  TileState kept_state(std::int64_t kept) const {
    TileState state = tiles_.start();
    tiles_.locate(kept, 0, kept_loops_, state);
    return state;
  }

  /// Accumulates tiles [first, last) of the reduced axes.
  void accumulate(const TileState& kept, std::int64_t first, std::int64_t last, void* const* pointers, std::byte* scratch) const {
    const std::int64_t count = results(kept);
    accumulator_.reset(accumulators(scratch), count);
    for (std::int64_t tile = first; tile < last; ++tile) {
      TileState state = kept;
      tiles_.locate(tile, kept_loops_, tiles_.tiling().loops.size(), state);
      tiles_.run(0, fold_ + 1, state, pointers, scratch);
      accumulator_.add(accumulators(scratch), scratch + partial().offset, count);
    }
  }

  /// Everything after the reduction, on the accumulated totals.
  void finish(const TileState& kept, void* const* pointers, std::byte* scratch) const {
    accumulator_.finish(accumulators(scratch), scratch + partial().offset, results(kept));
    tiles_.run(fold_ + 1, tiles_.instructions().size(), kept, pointers, scratch);
  }

  void reduce_tile(std::int64_t kept, void* const* pointers, std::byte* scratch) const {
    const TileState state = kept_state(kept);
    if (reduced_tiles_ == 1) return tiles_.run_tile(state, pointers, scratch);
    accumulate(state, 0, reduced_tiles_, pointers, scratch);
    finish(state, pointers, scratch);
  }

  /// Few results: the threads share the reduced axes of each.
  void share_reduction(void* const* pointers, std::byte* scratch, int threads) const {
    const auto sharing = static_cast<int>(std::min<std::int64_t>(threads, reduced_tiles_));
    for (std::int64_t kept = 0; kept < kept_tiles_; ++kept) {
      const TileState state = kept_state(kept);
      parallel_ranges(sharing, reduced_tiles_, [&](std::int64_t first, std::int64_t last, int thread) {
        accumulate(state, first, last, pointers, scratch + thread * thread_bytes_);
      });
      for (int thread = 1; thread < sharing; ++thread) {
        accumulator_.merge(accumulators(scratch), accumulators(scratch + thread * thread_bytes_), results(state));
      }
      finish(state, pointers, scratch);
    }
  }

  TileProgram tiles_;
  Accumulator accumulator_;
  std::size_t fold_ = 0;
  std::size_t kept_loops_ = 0;
  std::int64_t kept_tiles_ = 1;
  std::int64_t reduced_tiles_ = 1;
  std::int64_t thread_bytes_ = 0;
  std::int64_t elements_;
  int threads_;
};

class ReductionEngine final : public Engine {
 public:
  std::string_view name() const override { return "HOST_REDUCTION_ENGINE"; }

  std::optional<std::string> refuses(const Graph& graph) const override {
    return refusal_of([&] { ReductionPlan(graph, prepared_reduction(graph), 1); });
  }

  std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions& options) const override {
    return std::make_unique<ReductionPlan>(graph, prepared_reduction(graph), options.threads);
  }
};

}  // namespace

const Engine& reduction_engine() {
  static const ReductionEngine engine;
  return engine;
}

}  // namespace hipdnn_port
