// HOST_ROWWISE_ENGINE: tiles of whole rows, every intermediate in cache.
#include "rowwise_engine.h"

#include <algorithm>

#include "frontend/status.h"
#include "rowwise_parallel.h"
#include "rowwise_table.h"
#include "rowwise_tiles.h"

namespace hipdnn_port {
namespace {

RowProgram prepared_rows(const Graph& graph) {
  RowProgram program = lower_rowwise(graph);
  if (program.fold_count() == 1 && !program.broadcasts_back()) {
    throw Refusal("one reduction with nothing spread back over its axes; HOST_REDUCTION_ENGINE takes it");
  }
  fuse_steps(program);
  return program;
}

class RowwisePlan final : public Plan {
 public:
  RowwisePlan(const Graph& graph, const RowProgram& program, int threads)
      : tiles_(program, wanted_tile_elements(program, threads), true),
        elements_(program.size()),
        threads_(static_cast<int>(std::clamp<std::int64_t>(tiles_.tile_count(), 1, std::max(1, threads)))) {
    uids_ = pointer_uids(graph);
    workspace_bytes_ = tiles_.scratch_bytes() * threads_;
  }

  std::string describe() const override {
    return text("rowwise: ", tiles_.instructions().size(), " instruction(s) on tiles of ", tiles_.tiling().rows.most(), " x ",
                tiles_.tiling().cols.most(), ", ", tile_kernels().isa);
  }

  void execute(void* const* pointers, void* workspace, const Launch& launch) const override {
    const int threads = launch.threads;
    const int useful = useful_threads(std::min(threads, threads_), tiles_.tile_count(), elements_, tiles_.instructions().size());
    auto* scratch = static_cast<std::byte*>(workspace);
    parallel_ranges(useful, tiles_.tile_count(), [&](std::int64_t first, std::int64_t last, int thread) {
      tiles_.run_tiles(first, last, pointers, scratch + tiles_.scratch_bytes() * thread);
    });
  }

 private:
  TileProgram tiles_;
  std::int64_t elements_;
  int threads_;
};

class TablePlan final : public Plan {
 public:
  TablePlan(const Graph& graph, const ByteTable& table, int threads) : table_(table), threads_(threads) { uids_ = pointer_uids(graph); }

  std::string describe() const override { return "rowwise: table of 256 bytes"; }

  void execute(void* const* pointers, void*, const Launch& launch) const override {
    constexpr std::int64_t block = 4096;
    const std::int64_t blocks = (table_.elements + block - 1) / block;
    const int useful = useful_threads(std::min(launch.threads, threads_), blocks, table_.elements, 1);
    const auto* from = static_cast<const std::uint8_t*>(pointers[table_.from]);
    auto* to = static_cast<std::uint8_t*>(pointers[table_.to]);
    parallel_ranges(useful, blocks, [&](std::int64_t first, std::int64_t last, int) {
      const std::array<std::uint8_t, 256> values = table_.values;  // what is stored cannot be a part of it
      const std::int64_t end = std::min(last * block, table_.elements);
      for (std::int64_t i = first * block; i < end; ++i) to[i] = values[from[i]];
    });
  }

 private:
  ByteTable table_;
  int threads_;
};

class RowwiseEngine final : public Engine {
 public:
  std::string_view name() const override { return "HOST_ROWWISE_ENGINE"; }

  std::optional<std::string> refuses(const Graph& graph) const override {
    return refusal_of([&] { RowwisePlan(graph, prepared_rows(graph), 1); });
  }

  std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions& options) const override {
    const RowProgram program = prepared_rows(graph);
    if (const std::optional<ByteTable> table = byte_table(program)) return std::make_unique<TablePlan>(graph, *table, std::max(1, options.threads));
    return std::make_unique<RowwisePlan>(graph, program, options.threads);
  }
};

}  // namespace

std::vector<std::int64_t> pointer_uids(const Graph& graph) {
  std::vector<std::int64_t> uids;
  for (const Tensor& t : graph.tensors) {
    if (t.has_pointer()) uids.push_back(t.uid);
  }
  return uids;
}

std::int64_t wanted_tile_elements(const RowProgram& program, int threads) {
  const bool wide = std::any_of(program.values.begin(), program.values.end(), [](const RowValue& v) { return info_of(v.reg).bytes > 4; });
  const std::int64_t cached = program.steps.size() <= 1 ? 8192 : 2048;
  const std::int64_t share = program.size() / (4 * std::max(1, threads));
  return std::clamp<std::int64_t>(share, 512, wide ? cached / 2 : cached);
}

const Engine& rowwise_engine() {
  static const RowwiseEngine engine;
  return engine;
}

}  // namespace hipdnn_port
