#include "sdpa_products.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "frontend/status.h"
#include "onednn_engine.h"
#include "packed_memory.h"
#include "rowwise_engine.h"
#include "rowwise_parallel.h"
#include "widened_plan.h"

namespace hipdnn_port {
namespace {

constexpr std::int64_t kFewQueries = 16;             ///< fewer wait for memory, not for arithmetic
constexpr std::int64_t kScoresBytes = 512 << 10;     ///< of a task: they stay in the second-level cache
constexpr std::int64_t kMostBandBytes = 64 << 20;
/// A graph under construction; its tensors' pointers come in the order they were added.
class Builder {
 public:
  int tensor(hipdnnDataType_t dtype, std::vector<std::int64_t> dims, std::vector<std::int64_t> strides, bool is_virtual = false) {
    Tensor& t = graph_.tensors.emplace_back();
    t.uid = static_cast<std::int64_t>(graph_.tensors.size());
    t.dtype = dtype;
    t.dims = std::move(dims);
    t.strides = std::move(strides);
    t.is_virtual = is_virtual;
    return static_cast<int>(graph_.tensors.size()) - 1;
  }

  int dense(hipdnnDataType_t dtype, std::int64_t heads, std::int64_t rows, std::int64_t cols, bool is_virtual = false) {
    return tensor(dtype, {heads, rows, cols}, {rows * cols, cols, 1}, is_virtual);
  }

  int number(float value) {
    const int t = tensor(HIPDNN_DATA_FLOAT, {1, 1, 1}, {1, 1, 1});
    std::vector<std::byte>& bytes = graph_.tensors.back().value.emplace(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return t;
  }

  int pointwise(hipdnnPointwiseMode_t mode, std::vector<int> inputs, int out) {
    constexpr std::array names{HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT,
                               HIPDNN_ATTR_OPERATION_POINTWISE_IN_2_EXT};
    Node& node = add(HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    node.attributes[HIPDNN_ATTR_POINTWISE_MODE] = std::vector<std::int64_t>{mode};
    for (std::size_t i = 0; i < inputs.size(); ++i) node.tensors[names[i]] = {inputs[i]};
    node.tensors[HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT] = {out};
    return out;
  }

  int reduction(hipdnnReduceTensorOp_t op, int x, int y) {
    Node& node = add(HIPDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    node.attributes[HIPDNN_ATTR_REDUCTION_OPERATOR] = std::vector<std::int64_t>{op};
    node.tensors[HIPDNN_ATTR_OPERATION_REDUCTION_XDESC] = {x};
    node.tensors[HIPDNN_ATTR_OPERATION_REDUCTION_YDESC] = {y};
    return y;
  }

  void matmul(int a, int b, int c) {
    Node& node = add(HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    node.tensors[HIPDNN_ATTR_OPERATION_MATMUL_ADESC] = {a};
    node.tensors[HIPDNN_ATTR_OPERATION_MATMUL_BDESC] = {b};
    node.tensors[HIPDNN_ATTR_OPERATION_MATMUL_CDESC] = {c};
  }

  const Graph& graph() const { return graph_; }

 private:
  Node& add(hipdnnBackendDescriptorType_t type) { return graph_.nodes.emplace_back(Node{.type = type, .name = {}, .tensors = {}, .attributes = {}}); }

  Graph graph_;
};

/// Queries of some heads that are computed together.
struct RowBlock {
  std::int64_t heads;
  std::int64_t rows;
};

/// The plans of a block.
struct RowPlans {
  std::unique_ptr<Plan> scores;   ///< (q, k, scores)
  std::unique_ptr<Plan> softmax;  ///< (scores, weights, mask?, band?)
  std::unique_ptr<Plan> values;   ///< (weights, v, o)

  std::int64_t workspace_bytes() const {
    return std::max({scores->workspace_bytes(), softmax->workspace_bytes(), values->workspace_bytes()});
  }
};

Graph scores_graph(const SdpaProblem& p, const RowBlock& block) {
  Builder b;
  const int q = b.tensor(p.q.dtype, {block.heads, block.rows, p.depth}, {p.q.strides[1], p.q.strides[2], p.q.strides[3]});
  const int k = b.tensor(p.k.dtype, {block.heads, p.depth, p.keys}, {p.k.strides[1], p.k.strides[3], p.k.strides[2]});
  b.matmul(q, k, b.dense(HIPDNN_DATA_FLOAT, block.heads, block.rows, p.keys));
  return b.graph();
}

Graph values_graph(const SdpaProblem& p, const RowBlock& block) {
  Builder b;
  const int weights = b.dense(p.v.dtype, block.heads, block.rows, p.keys);
  const int v = b.tensor(p.v.dtype, {block.heads, p.keys, p.value_depth}, {p.v.strides[1], p.v.strides[2], p.v.strides[3]});
  b.matmul(weights, v, b.tensor(p.o.dtype, {block.heads, block.rows, p.value_depth}, {p.o.strides[1], p.o.strides[2], p.o.strides[3]}));
  return b.graph();
}

Graph softmax_graph(const SdpaProblem& p, const RowBlock& block, bool has_band) {
  Builder b;
  const auto wide = [&] { return b.dense(HIPDNN_DATA_FLOAT, block.heads, block.rows, p.keys, true); };
  const auto narrow = [&] { return b.dense(HIPDNN_DATA_FLOAT, block.heads, block.rows, 1, true); };
  const int scores = b.dense(HIPDNN_DATA_FLOAT, block.heads, block.rows, p.keys);
  const int weights = b.dense(p.v.dtype, block.heads, block.rows, p.keys);
  int x = b.pointwise(HIPDNN_POINTWISE_MUL, {scores, b.number(static_cast<float>(p.scale))}, wide());
  if (p.mask) {
    const auto extent = [](std::int64_t size, std::int64_t stride) { return stride == 0 ? 1 : size; };
    const auto& strides = p.mask->strides;
    const int mask = b.tensor(p.mask->dtype, {extent(block.heads, strides[1]), extent(block.rows, strides[2]), extent(p.keys, strides[3])},
                              {strides[1], strides[2], strides[3]});
    x = p.mask->dtype == HIPDNN_DATA_BOOLEAN
            ? b.pointwise(HIPDNN_POINTWISE_BINARY_SELECT, {x, b.number(-std::numeric_limits<float>::infinity()), mask}, wide())
            : b.pointwise(HIPDNN_POINTWISE_ADD, {x, mask}, wide());
  }
  if (has_band) x = b.pointwise(HIPDNN_POINTWISE_ADD, {x, b.tensor(HIPDNN_DATA_FLOAT, {1, block.rows, p.keys}, {0, p.keys, 1})}, wide());
  int high = b.reduction(HIPDNN_REDUCE_TENSOR_MAX, x, narrow());
  const bool may_see_nothing = p.mask || has_band;  // then the weights are 0: exp(-inf - lowest) / least
  if (may_see_nothing) high = b.pointwise(HIPDNN_POINTWISE_MAX, {high, b.number(std::numeric_limits<float>::lowest())}, narrow());
  const int power = b.pointwise(HIPDNN_POINTWISE_EXP, {b.pointwise(HIPDNN_POINTWISE_SUB, {x, high}, wide())}, wide());
  int total = b.reduction(HIPDNN_REDUCE_TENSOR_ADD, power, narrow());
  if (may_see_nothing) total = b.pointwise(HIPDNN_POINTWISE_MAX, {total, b.number(std::numeric_limits<float>::min())}, narrow());
  b.pointwise(HIPDNN_POINTWISE_DIV, {power, total}, weights);
  return b.graph();
}

/// 0 where a query attends a key by the band, else -inf: [queries, keys].
std::shared_ptr<void> band_mask(const SdpaProblem& p) {
  std::shared_ptr<void> memory = packed_memory(static_cast<std::size_t>(p.queries * p.keys) * sizeof(float));
  auto* row = static_cast<float*>(memory.get());
  for (std::int64_t i = 0; i < p.queries; ++i, row += p.keys) {
    const KeyRange seen = p.attended(i, p.queries, p.keys);
    std::fill_n(row, p.keys, -std::numeric_limits<float>::infinity());
    if (seen.first < seen.last) std::fill(row + seen.first, row + seen.last, 0.0f);
  }
  return memory;
}

class SdpaProductsPlan final : public Plan {
 public:
  SdpaProductsPlan(const SdpaProblem& problem, int threads) : p_(problem), threads_(std::max(threads, 1)) {
    uids_ = p_.uids;
    if (p_.left_bound || p_.right_bound) band_ = band_mask(p_);
    choose_block();
    chunks_ = (p_.queries + block_.rows - 1) / block_.rows;
    whole_ = plans_of(block_);
    if (p_.queries % block_.rows != 0) rest_ = plans_of({block_.heads, p_.queries % block_.rows});
    const std::int64_t scores = block_.heads * block_.rows * p_.keys;
    scores_bytes_ = whole_lines(scores * static_cast<std::int64_t>(sizeof(float)));
    weights_bytes_ = whole_lines(scores * static_cast<std::int64_t>(element_bytes(p_.v.dtype)));
    const std::int64_t inner = std::max(whole_.workspace_bytes(), rest_.scores != nullptr ? rest_.workspace_bytes() : 0);
    thread_bytes_ = scores_bytes_ + weights_bytes_ + whole_lines(inner);
    workspace_bytes_ = thread_bytes_ * threads_;
  }

  std::string describe() const override {
    return text("attention: ", tasks(), " task(s) of ", block_.heads, " head(s) and up to ", block_.rows, " rows, ", whole_.scores->describe(), ", ",
                whole_.softmax->describe(), ", ", whole_.values->describe());
  }

  void execute(void* const* pointers, void* workspace, const Launch& launch) const override {
    const int threads = launch.threads;
    auto* const bytes = static_cast<std::byte*>(workspace);
    std::atomic<std::int64_t> next{0};
    const int useful = static_cast<int>(std::min<std::int64_t>({threads, threads_, tasks()}));
    parallel_ranges(std::max(useful, 1), std::max(useful, 1), [&](std::int64_t, std::int64_t, int thread) {
      for (std::int64_t t = next.fetch_add(1, std::memory_order_relaxed); t < tasks(); t = next.fetch_add(1, std::memory_order_relaxed)) {
        run(t, pointers, bytes + thread * thread_bytes_);
      }
    });
  }

 private:
  std::int64_t tasks() const { return p_.batches * (p_.heads / block_.heads) * chunks_; }

  /// Scores that stay in cache, and two tasks for each thread.
  void choose_block() {
    const std::int64_t all = p_.batches * p_.heads;
    const std::int64_t wanted = threads_ == 1 ? 1 : 2 * threads_;
    const std::int64_t row_bytes = p_.keys * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t share = all >= wanted ? p_.queries : (p_.queries * all + wanted - 1) / wanted;
    block_.rows = std::min({p_.queries, std::max(kFewQueries, kScoresBytes / row_bytes), std::max(4 * kFewQueries, share)});
    // Heads with keys of their own lie at equal distances and can share a call.
    if (block_.rows < p_.queries || p_.heads_per_key_head != 1 || p_.heads_per_value_head != 1) return;
    for (std::int64_t heads = 2; heads <= p_.heads; ++heads) {
      const bool fits = heads * block_.rows * row_bytes <= kScoresBytes && all / heads >= wanted;
      if (fits && p_.heads % heads == 0) block_.heads = heads;
    }
  }

  RowPlans plans_of(const RowBlock& block) const {
    const PlanOptions one{.constants = {}, .threads = 1};
    return {onednn_engine().build(scores_graph(p_, block), one), rowwise_engine().build(softmax_graph(p_, block, band_ != nullptr), one),
            onednn_engine().build(values_graph(p_, block), one)};
  }

  void run(std::int64_t task, void* const* pointers, std::byte* workspace) const {
    const std::int64_t head_blocks = p_.heads / block_.heads;
    const std::int64_t batch = task / chunks_ / head_blocks;
    const std::int64_t head = task / chunks_ % head_blocks * block_.heads;
    const std::int64_t first = task % chunks_ * block_.rows;
    const RowPlans& plans = p_.queries - first < block_.rows ? rest_ : whole_;
    void* const scores = workspace;
    void* const weights = workspace + scores_bytes_;
    void* const inner = workspace + scores_bytes_ + weights_bytes_;
    void* const q = p_.q.at_output(pointers, batch, head, first);
    void* const k = p_.k.at_output(pointers, batch, head / p_.heads_per_key_head, 0);
    void* const v = p_.v.at_output(pointers, batch, head / p_.heads_per_value_head, 0);
    const std::array<void*, 3> first_product{q, k, scores};
    plans.scores->execute(first_product.data(), inner, 1);
    std::array<void*, 4> rows{scores, weights};
    std::size_t count = 2;
    if (p_.mask) rows[count++] = p_.mask->at_output(pointers, batch, head, first);
    if (band_ != nullptr) rows[count++] = static_cast<float*>(band_.get()) + first * p_.keys;
    plans.softmax->execute(rows.data(), inner, 1);
    const std::array<void*, 3> second_product{weights, v, p_.o.at_output(pointers, batch, head, first)};
    plans.values->execute(second_product.data(), inner, 1);
  }

  SdpaProblem p_;
  int threads_;
  RowBlock block_{1, 1};     ///< of a task
  std::int64_t chunks_ = 1;  ///< tasks of the same heads
  std::shared_ptr<void> band_;
  RowPlans whole_, rest_;
  std::int64_t scores_bytes_ = 0, weights_bytes_ = 0, thread_bytes_ = 0;
};

bool is_native(const Graph& graph) {
  // A graph that runs in float32 between conversions is better served by kernels that widen blocks in cache.
  return !onednn_engine().refuses(graph) && onednn_engine().build(graph, {})->describe().find("through f32") == std::string::npos;
}

}  // namespace

std::unique_ptr<Plan> build_sdpa_products(const SdpaProblem& p, int threads) {
  const bool is_narrow = p.q.dtype != HIPDNN_DATA_FLOAT && p.q.dtype == p.k.dtype && p.q.dtype == p.v.dtype;
  if (!is_narrow || p.queries < kFewQueries || p.scale_tensor || p.query_lengths || p.key_lengths || p.stats || p.max || p.sum_exp || p.sink || p.soft_cap != 0.0) {
    return nullptr;
  }
  if ((p.left_bound || p.right_bound) && p.queries > kMostBandBytes / static_cast<std::int64_t>(sizeof(float)) / p.keys) return nullptr;
  if (!is_native(scores_graph(p, {1, p.queries})) || !is_native(values_graph(p, {1, p.queries}))) return nullptr;
  if (rowwise_engine().refuses(softmax_graph(p, {1, kFewQueries}, p.left_bound || p.right_bound))) return nullptr;
  return std::make_unique<SdpaProductsPlan>(p, threads);
}

}  // namespace hipdnn_port
