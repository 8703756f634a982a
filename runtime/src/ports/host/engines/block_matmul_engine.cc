// HOST_BLOCK_MATMUL_ENGINE: a matmul whose right operand is the block scale dequantization of numbers of 4 or 8 bits, with an epilogue of
// pointwise operations. Constants are packed once, other numbers in every run. The left operand may be block scale quantized to 8 bits and
// dequantized again: then the products are those of integers where the CPU has instructions for that.
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
#include "onednn_memory.h"
#include "packed_memory.h"
#include "rowwise_engine.h"
#include "rowwise_parallel.h"
#include "rowwise_program.h"

namespace hipdnn_port {
namespace {

/// Rows of a tensor whose last dim is along columns, the other dims in the order of `dims`.
class Rows {
 public:
  Rows(const Tensor& tensor, const std::vector<std::int64_t>& dims) : dtype_(tensor.dtype), dims_(dims) {
    const Tensor full = onednn::broadcast_view(tensor, dims.size());
    strides_.resize(dims.size());
    for (std::size_t d = 0; d < dims.size(); ++d) strides_[d] = full.dims[d] == 1 ? 0 : full.strides[d];
    convert_to_ = find_conversion(HIPDNN_DATA_FLOAT, dtype_);
    convert_from_ = find_conversion(dtype_, HIPDNN_DATA_FLOAT);
  }

  /// to[c] = row[first + c], as float32.
  void load(const void* base, std::int64_t row, std::int64_t first, std::int64_t count, float* to) const {
    TileArgs args{.rows = 1, .cols = count, .dst = to};
    args.src[0] = static_cast<const std::byte*>(base) + offset(row, first);
    args.src_col[0] = strides_.back();
    convert_from_(args);
  }

  void store(void* base, std::int64_t row, std::int64_t first, std::int64_t count, const float* from) const {
    TileArgs args{.rows = 1, .cols = count, .dst = static_cast<std::byte*>(base) + offset(row, first), .dst_col = strides_.back()};
    args.src[0] = from;
    args.src_col[0] = 1;
    convert_to_(args);
  }

 private:
  std::int64_t offset(std::int64_t row, std::int64_t column) const {
    std::int64_t at = column * strides_.back();
    for (std::size_t d = dims_.size() - 1; d-- > 0; row /= dims_[d]) at += row % dims_[d] * strides_[d];
    return at * static_cast<std::int64_t>(element_bytes(dtype_));
  }

  hipdnnDataType_t dtype_;
  std::vector<std::int64_t> dims_;
  std::vector<std::int64_t> strides_;
  TileKernel convert_to_ = nullptr, convert_from_ = nullptr;
};

class BlockMatmulPlan final : public Plan {
 public:
  BlockMatmulPlan(const Graph& graph, const BlockMatmul& read, const PlanOptions& options) : steps_(read.steps), threads_(std::max(1, options.threads)) {
    const Tensor& numbers = graph.tensor(read.numbers);
    const Tensor& scales = graph.tensor(read.scales);
    const auto constant = [&](const Tensor& t) {
      const auto found = options.constants.find(t.uid);
      return found == options.constants.end() ? nullptr : found->second;
    };
    const StoredBlocks stored{&numbers, &scales, read.block};
    uids_ = pointer_uids(graph);
    const auto pointer_of = [&](int t) { return static_cast<std::size_t>(std::ranges::find(uids_, graph.tensor(t).uid) - uids_.begin()); };
    if (constant(numbers) != nullptr && constant(scales) != nullptr) {
      packed_ = packed_blocks(stored, constant(numbers), constant(scales));
    } else {
      packed_ = std::make_shared<PackedBlocks>(unplaced_blocks(stored));
      unpacked_ = {numbers, scales, pointer_of(read.numbers), pointer_of(read.scales)};
    }
    const std::vector<std::int64_t>& dims = graph.tensor(read.result).dims;
    rows_ = std::accumulate(dims.begin(), dims.end() - 1, std::int64_t{1}, std::multiplies<>());
    std::vector<std::int64_t> left = dims;
    left.back() = packed_->depth;
    tensors_.push_back({Rows(graph.tensor(read.a), left), pointer_of(read.a)});
    tensors_.push_back({Rows(graph.tensor(read.result), dims), pointer_of(read.result)});
    for (TileStep& step : steps_) {
      if (step.operand < 0) continue;
      tensors_.push_back({Rows(graph.tensor(step.operand), dims), pointer_of(step.operand)});
      step.operand = static_cast<int>(tensors_.size()) - 1;
    }
    choose_kernels(read.a_block != 0);
    lay_out_workspace(read.a_block != 0);
  }

  std::string describe() const override {
    return text("matmul by blocks of ", packed_->block, " of ", packed_->bits, " bits, ", bytes_ != nullptr ? "of bytes (avx512_vnni)" : tile_kernels().isa,
                steps_.empty() ? "" : " + epilogue");
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
  struct Operand {
    Rows rows;
    std::size_t pointer;
  };
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
    if (!quantizes || !onednn::isa_includes(dnnl_cpu_isa_avx512_core_vnni)) return;
    bytes_ = packed_->bits == 4 ? bytes_kernels_vnni().bytes_by_4 : bytes_kernels_vnni().bytes_by_8;
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
      tensors_[0].rows.load(pointers[tensors_[0].pointer], row, 0, packed_->depth, to);
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
    for (std::int64_t r = 0; r < rows; ++r) finish(pointers, row + r, first, count, tile.data() + r * kPanelColumns);
  }

  /// The epilogue of a part of a row, and the store.
  void finish(void* const* pointers, std::int64_t row, std::int64_t first, std::int64_t count, float* values) const {
    std::array<float, kPanelColumns> other;  // NOLINT: filled up to `count` before use
    for (const TileStep& step : steps_) {
      TileArgs args{.rows = 1, .cols = count, .dst = values, .param = &step.parameter};
      args.src[0] = values;
      args.src_col[0] = 1;
      if (step.operand >= 0) {
        const Operand& operand = tensors_[static_cast<std::size_t>(step.operand)];
        operand.rows.load(pointers[operand.pointer], row, first, count, other.data());
        args.src[1] = other.data();
        args.src_col[1] = 1;
      }
      step.kernel(args);
    }
    tensors_[1].rows.store(pointers[tensors_[1].pointer], row, first, count, values);
  }

  std::shared_ptr<const PackedBlocks> packed_;  ///< without places where the weights are no constants
  std::optional<Unpacked> unpacked_;
  std::int64_t packed_at_ = 0;  ///< in the workspace
  std::vector<TileStep> steps_;
  std::vector<Operand> tensors_;  ///< the left operand, the result, operands of steps
  int threads_;
  std::int64_t rows_ = 0;
  std::int64_t depth_ = 0;  ///< of a row in the workspace: whole blocks
  std::int64_t codes_ = 0, scales_ = 0, sums_ = 0;
  bool quantizes_ = false;
  BlockKernels::Product product_ = nullptr;
  BlockKernels::Product bytes_ = nullptr;
};

class BlockMatmulEngine final : public Engine {
 public:
  std::string_view name() const override { return "HOST_BLOCK_MATMUL_ENGINE"; }

  std::optional<std::string> refuses(const Graph& graph) const override {
    try {
      read_block_matmul(graph);
    } catch (const Refusal& refusal) {
      return refusal.what();
    }
    return std::nullopt;
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
