// HOST_BLOCK_MATMUL_ENGINE: a matmul whose right operand is the block scale dequantization of numbers of 4 or 8 bits, with an epilogue of
// pointwise operations. Constants are packed once, other numbers in every run. The left operand may be block scale quantized to 8 bits and
// dequantized again: then the products are those of integers where the CPU has vectors of them.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "block_matmul_graph.h"
#include "block_weights.h"
#include "frontend/engine.h"
#include "frontend/status.h"
#include "kernels_blocks.h"
#include "kernels_tile.h"
#include "matmul_epilogue.h"
#include "matmul_rows.h"
#include "onednn_memory.h"
#include "packed_memory.h"
#include "rowwise_engine.h"
#include "rowwise_parallel.h"
#include "rowwise_program.h"

namespace hipdnn_port {
namespace {

class BlockMatmulPlan final : public Plan {
 public:
  BlockMatmulPlan(const Graph& graph, const BlockMatmul& read, const PlanOptions& options) : threads_(std::max(1, options.threads)) {
    const Tensor& numbers = graph.tensor(read.numbers);
    const Tensor& scales = graph.tensor(read.scales);
    const auto constant = [&](const Tensor& t) {
      const auto found = options.constants.find(t.uid);
      return found == options.constants.end() ? nullptr : found->second;
    };
    const StoredBlocks stored{&numbers, &scales, read.block};
    uids_ = pointer_uids(graph);
    if (constant(numbers) != nullptr && constant(scales) != nullptr) {
      packed_ = packed_blocks(stored, constant(numbers), constant(scales));
    } else {
      packed_ = std::make_shared<PackedBlocks>(unplaced_blocks(stored));
      unpacked_ = {numbers, scales, pointer_of(graph, read.numbers, uids_), pointer_of(graph, read.scales, uids_)};
    }
    const std::vector<std::int64_t>& dims = graph.tensor(read.epilogue.result).dims;
    rows_ = std::accumulate(dims.begin(), dims.end() - 1, std::int64_t{1}, std::multiplies<>());
    std::vector<std::int64_t> left = dims;
    left.back() = packed_->depth;
    left_ = {Rows(graph.tensor(read.a), left), pointer_of(graph, read.a, uids_)};
    result_.emplace(graph, read.epilogue, uids_);
    choose_kernels(read.a_block != 0);
    lay_out_workspace(read.a_block != 0);
  }

  std::string describe() const override {
    return text("matmul by blocks of ", packed_->block, " of ", packed_->bits, " bits, ", bytes_ != nullptr ? "of bytes, " : "", isa_,
                result_->has_steps() ? " + epilogue" : "");
  }

  void execute(void* const* pointers, void* workspace, const Launch& launch) const override {
    auto* const scratch = static_cast<std::byte*>(workspace);
    const int threads = std::min(threads_, launch.threads);
    parallel_ranges(useful_threads(threads, rows_, rows_ * packed_->depth, 2), rows_,
                    [&](std::int64_t first, std::int64_t last, int) { prepare(pointers, scratch, first, last); });
    const std::int64_t work = rows_ * packed_->depth * packed_->columns / 4;
    const PackedBlocks weights = packed(pointers, scratch);
    parallel_ranges(useful_threads(threads, packed_->panels, work, 1), packed_->panels, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t panel = first; panel < last; ++panel) {
        for (std::int64_t row = 0; row < rows_; row += kBlockRows) multiply(pointers, scratch, weights, panel, row);
      }
    });
  }

 private:
  /// Weights that are no constants.
  struct Unpacked {
    Tensor numbers, scales;
    std::size_t numbers_pointer, scales_pointer;
  };

  void choose_kernels(bool quantizes) {
    const BlockKernels& kernels = tile_kernels().blocks;
    product_ = packed_->bits == 4 ? kernels.floats_by_4 : kernels.floats_by_8;
    quantizes_ = quantizes;
#if defined(__x86_64__)
    if (!quantizes || !onednn::isa_includes(dnnl_cpu_isa_avx2)) return;
    const BytesKernels& found = onednn::isa_includes(dnnl_cpu_isa_avx512_core_vnni) ? bytes_kernels_vnni() : bytes_kernels_avx2();
    bytes_ = packed_->bits == 4 ? found.bytes_by_4 : found.bytes_by_8;
    isa_ = found.isa;
#endif
  }

  /// Rows of float32; where they are quantized, bytes, scales and sums of blocks.
  void lay_out_workspace(bool quantizes) {
    depth_ = packed_->blocks * packed_->block;
    lay_out_rows(quantizes);
    if (unpacked_) {
      packed_at_ = workspace_bytes_;
      workspace_bytes_ += whole_lines(packed_->bytes());
    }
  }

  void lay_out_rows(bool quantizes) {
    constexpr std::int64_t word = sizeof(float);
    workspace_bytes_ = whole_lines(rows_ * depth_ * word);
    if (!quantizes) return;
    codes_ = workspace_bytes_;
    scales_ = codes_ + whole_lines(rows_ * depth_);
    sums_ = scales_ + whole_lines(rows_ * packed_->blocks * word);
    workspace_bytes_ = sums_ + whole_lines(rows_ * packed_->blocks * word);
  }

  void prepare(void* const* pointers, std::byte* scratch, std::int64_t first, std::int64_t last) const {
    auto* const floats = reinterpret_cast<float*>(scratch);
    for (std::int64_t row = first; row < last; ++row) {
      float* const to = floats + row * depth_;
      left_->rows.load(pointers[left_->pointer], row, 0, packed_->depth, to);
      std::fill(to + packed_->depth, to + depth_, 0.0F);
      if (quantizes_) quantize(scratch, row, to);
    }
  }

  void quantize(std::byte* scratch, std::int64_t row, float* floats) const {
    auto* const codes = reinterpret_cast<std::int8_t*>(scratch + codes_) + row * depth_;
    float* const scales = reinterpret_cast<float*>(scratch + scales_) + row * packed_->blocks;
    tile_kernels().blocks.quantize({.from = floats,
                                    .blocks = packed_->blocks,
                                    .block = packed_->block,
                                    .to = codes,
                                    .scale = scales,
                                    .sum = reinterpret_cast<std::int32_t*>(scratch + sums_) + row * packed_->blocks});
    if (bytes_ != nullptr) return;
    for (std::int64_t k = 0; k < depth_; ++k) floats[k] = static_cast<float>(codes[k]) * scales[k / packed_->block];
  }

  /// The weights, packed now where they are no constants.
  PackedBlocks packed(void* const* pointers, std::byte* scratch) const {
    PackedBlocks weights = *packed_;
    if (unpacked_) {
      weights.lie_at(scratch + packed_at_);
      pack_blocks(weights, {&unpacked_->numbers, &unpacked_->scales, weights.block}, pointers[unpacked_->numbers_pointer],
                  pointers[unpacked_->scales_pointer]);
    }
    return weights;
  }

  void multiply(void* const* pointers, const std::byte* scratch, const PackedBlocks& weights, std::int64_t panel, std::int64_t row) const {
    alignas(kLineBytes) std::array<float, kBlockRows * kPanelColumns> tile;  // NOLINT: the product writes what is read
    const std::int64_t rows = std::min(kBlockRows, rows_ - row);
    const std::int64_t cells = panel * weights.blocks * kPanelColumns;
    BlockProductArgs args{.rows = rows,
                          .blocks = packed_->blocks,
                          .block = packed_->block,
                          .a = reinterpret_cast<const float*>(scratch) + row * depth_,
                          .a_row = depth_,
                          .weights = weights.weights + panel * weights.panel_bytes(),
                          .scale = weights.scales + cells,
                          .zero = weights.zeros == nullptr ? nullptr : weights.zeros + cells,
                          .c = tile.data(),
                          .c_row = kPanelColumns};
    if (bytes_ != nullptr) {
      args.a = reinterpret_cast<const std::int8_t*>(scratch + codes_) + row * depth_;
      args.a_scale = reinterpret_cast<const float*>(scratch + scales_) + row * packed_->blocks;
      args.a_sum = reinterpret_cast<const std::int32_t*>(scratch + sums_) + row * packed_->blocks;
    }
    (bytes_ != nullptr ? bytes_ : product_)(args);
    const std::int64_t first = panel * kPanelColumns;
    const std::int64_t count = std::min(kPanelColumns, packed_->columns - first);
    result_->finish(pointers, row, rows, first, count, tile.data(), kPanelColumns);
  }

  std::shared_ptr<const PackedBlocks> packed_;  ///< without places where the weights are no constants
  std::optional<Unpacked> unpacked_;
  std::int64_t packed_at_ = 0;  ///< in the workspace
  std::optional<OperandRows> left_;
  std::optional<MatmulResult> result_;
  int threads_;
  std::int64_t rows_ = 0;
  std::int64_t depth_ = 0;  ///< of a row in the workspace: whole blocks
  std::int64_t codes_ = 0, scales_ = 0, sums_ = 0;
  bool quantizes_ = false;
  BlockKernels::Product product_ = nullptr;
  BlockKernels::Product bytes_ = nullptr;
  const char* isa_ = tile_kernels().isa;  ///< of the product
};

class BlockMatmulEngine final : public Engine {
 public:
  std::string_view name() const override { return "HOST_BLOCK_MATMUL_ENGINE"; }

  std::optional<std::string> refuses(const Graph& graph) const override {
    return refusal_of([&] { read_block_matmul(graph); });
  }

  std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions& options) const override {
    return std::make_unique<BlockMatmulPlan>(graph, read_block_matmul(graph), options);
  }
};

}  // namespace

const Engine& block_matmul_engine() {
  static const BlockMatmulEngine engine;
  return engine;
}

}  // namespace hipdnn_port
