// HOST_SDPA_ENGINE: one attention forward node, whose queries and heads threads share. Scores are never stored whole: a block of keys at a time,
// with the softmax carried along. Inputs of 16 bits are widened block by block; arithmetic is float32. A query that attends no key gets 0, as in
// PyTorch.
#include <algorithm>
#include <atomic>
#include <utility>

#include "frontend/engine.h"
#include "frontend/status.h"
#include "rowwise_parallel.h"
#include "rowwise_program.h"
#include "sdpa_products.h"
#include "sdpa_task.h"

namespace hipdnn_port {
namespace {

constexpr std::int64_t kMostRows = 512;   ///< of a task: their queries and results fit the cache beside a block of keys
constexpr std::int64_t kLeastRows = 48;   ///< fewer would not pay for packing the keys
constexpr std::int64_t kTasksPerThread = 2;
constexpr std::int64_t kScratchBytesPerThread = std::int64_t{64} << 20;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

class SdpaPlan final : public Plan {
 public:
  SdpaPlan(const SdpaProblem& problem, int threads)
      : stacked_(problem.heads_per_key_head == problem.heads_per_value_head ? problem.heads_per_key_head : 1),
        groups_(problem.batches * (problem.heads / stacked_)),
        rows_(stacked_ * problem.queries),
        threads_(std::max(1, threads)),
        task_rows_(rows_of_a_task()),
        chunks_(ceil_div(rows_, task_rows_)),
        blocks_(problem, task_rows_) {
    // Rows as long as an image has pixels: fewer threads, for the scratch of all of them.
    threads_ = static_cast<int>(std::clamp<std::int64_t>(kScratchBytesPerThread * threads_ / blocks_.scratch_bytes(), 1, threads_));
    uids_ = problem.uids;
    workspace_bytes_ = blocks_.scratch_bytes() * threads_;
  }

  std::string describe() const override {
    return text("attention: ", groups_ * chunks_, " task(s) of up to ", task_rows_, " rows, ", tile_kernels().isa);
  }

  void execute(void* const* pointers, void* workspace, const Launch& launch) const override {
    const int threads = launch.threads;
    auto* const scratch = static_cast<std::byte*>(workspace);
    blocks_.problem().check_pages(pointers);
    std::atomic<std::int64_t> next{0};
    const int useful = threads_for(threads);
    parallel_ranges(useful, useful, [&](std::int64_t, std::int64_t, int thread) {
      for (std::int64_t t = next.fetch_add(1, std::memory_order_relaxed); t < groups_ * chunks_; t = next.fetch_add(1, std::memory_order_relaxed)) {
        blocks_.run(task(t), pointers, scratch + blocks_.scratch_bytes() * thread);
      }
    });
  }

 private:
  std::int64_t rows_of_a_task() const {
    const std::int64_t wanted = threads_ == 1 ? 1 : ceil_div(kTasksPerThread * threads_, groups_);
    const std::int64_t least = std::min(rows_, kLeastRows);
    return std::clamp(ceil_div(rows_, wanted), least, std::max(least, kMostRows));
  }

  SdpaTask task(std::int64_t number) const {
    const std::int64_t group = number / chunks_;
    const std::int64_t first = number % chunks_ * task_rows_;
    const std::int64_t head_groups = blocks_.problem().heads / stacked_;
    return {.batch = group / head_groups,
            .first_head = group % head_groups * stacked_,
            .first = first,
            .last = std::min(first + task_rows_, rows_)};
  }

  int threads_for(int threads) const {
    const SdpaProblem& p = blocks_.problem();
    const std::int64_t features = p.keys * (p.depth + p.value_depth);
    // Few rows are bound by reading keys and values once, which costs as much as multiplying them with this many rows.
    constexpr std::int64_t rows_per_read = 4;
    return useful_threads(std::min(threads, threads_), groups_ * chunks_, groups_ * features, static_cast<std::size_t>(std::max(rows_, rows_per_read) / 8));
  }

  std::int64_t stacked_;  ///< heads whose queries share keys and values
  std::int64_t groups_;
  std::int64_t rows_;     ///< of a group
  int threads_;
  std::int64_t task_rows_;
  std::int64_t chunks_;   ///< tasks of a group
  SdpaBlocks blocks_;
};

class SdpaEngine final : public Engine {
 public:
  std::string_view name() const override { return "HOST_SDPA_ENGINE"; }

  std::optional<std::string> refuses(const Graph& graph) const override {
    return refusal_of([&] { SdpaPlan(read_sdpa(graph), 1); });
  }

  std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions& options) const override {
    const SdpaProblem problem = read_sdpa(graph);
    if (auto plan = build_sdpa_products(problem, options.threads)) return plan;
    return std::make_unique<SdpaPlan>(problem, options.threads);
  }
};

}  // namespace

const Engine& sdpa_engine() {
  static const SdpaEngine engine;
  return engine;
}

}  // namespace hipdnn_port
