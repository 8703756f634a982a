// HOST_BLOCK_SCALE_ENGINE: one block scale quantize or dequantize, a block at a time, its numbers widened to float32. Quantized numbers are fp8
// e4m3, e5m2 or int8, for dequantize int4 too; scales fp8 e8m0 or e4m3 or float32; the other side float32, float16 or bfloat16. A block's scale
// is its greatest magnitude over the quantized type's, rounded up to the scale's type; quotients are rounded to nearest even. Blocks lie along
// any dims; not transposed, no negative scales.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "frontend/engine.h"
#include "frontend/names.h"
#include "frontend/status.h"
#include "kernels_tile.h"
#include "narrow_floats.h"
#include "rowwise_engine.h"
#include "rowwise_parallel.h"
#include "rowwise_program.h"

namespace hipdnn_port {
namespace {

constexpr std::size_t kMostRank = 8;
constexpr std::int64_t kMostBlock = 4096;  ///< elements of a block: they live on the stack

/// Which tensors a node has and how they divide into blocks.
struct Blocks {
  bool quantizes = false;
  Tensor wide, narrow, scale;
  std::array<std::int64_t, kMostRank> size{};  ///< of a block, per dim
};

void check_type(const Tensor& t, const char* what, std::initializer_list<hipdnnDataType_t> types) {
  if (!t.has_pointer() || std::ranges::find(types, t.dtype) == types.end()) throw Refusal(text(what, " is ", describe(t)));
}

/// The block size as attributes say: along an axis, of every dim, or along the one dim that the scale divides.
std::vector<std::int64_t> stated_sizes(const Graph& graph, const Blocks& blocks) {
  const Node& node = graph.nodes[0];
  const auto rank = static_cast<std::size_t>(blocks.wide.rank());
  const std::vector<std::int64_t>& given = node.ints(blocks.quantizes ? HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE
                                                                      : HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE);
  if (!blocks.quantizes && given.size() == rank) return given;
  if (given.size() != 1) throw Refusal(text("block size ", show(given), ": expected one number, or one per dim"));
  std::int64_t axis = node.integer_or(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_AXIS_EXT, blocks.wide.rank() - 1);
  if (!blocks.quantizes) {
    for (std::size_t d = 0; d < rank; ++d) {
      if (blocks.scale.dims[d] != blocks.wide.dims[d]) axis = static_cast<std::int64_t>(d);
    }
  }
  if (axis < 0 || axis >= blocks.wide.rank()) throw Refusal(text("axis ", axis, " of ", describe(blocks.wide)));
  std::vector<std::int64_t> sizes(rank, 1);
  sizes[static_cast<std::size_t>(axis)] = given[0];
  return sizes;
}

Blocks read_blocks(const Graph& graph) {
  if (graph.nodes.size() != 1) throw Refusal("takes one node");
  const Node& node = graph.nodes[0];
  Blocks blocks;
  blocks.quantizes = node.type == HIPDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR;
  if (!blocks.quantizes && node.type != HIPDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR) {
    throw Refusal(text(descriptor_name(node.type), " is neither block scale quantize nor dequantize"));
  }
  if (node.integer_or(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_TRANSPOSE_EXT, 0) != 0) throw Refusal("quantizes transposed");
  if (node.integer_or(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_NEG_SCALE, 0) != 0) throw Refusal("has negative scales");
  blocks.wide = graph.operand(blocks.quantizes ? HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC : HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC);
  blocks.narrow = graph.operand(blocks.quantizes ? HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC : HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC);
  blocks.scale = graph.operand(blocks.quantizes ? HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC
                                                   : HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC);
  check_type(blocks.wide, "the wide tensor", {HIPDNN_DATA_FLOAT, HIPDNN_DATA_HALF, HIPDNN_DATA_BFLOAT16});
  const hipdnnDataType_t least = blocks.quantizes ? HIPDNN_DATA_INT8 : HIPDNN_DATA_INT4;
  check_type(blocks.narrow, "the quantized tensor", {HIPDNN_DATA_FP8_E4M3, HIPDNN_DATA_FP8_E5M2, HIPDNN_DATA_INT8, least});
  check_type(blocks.scale, "the scale", {HIPDNN_DATA_FP8_E8M0, HIPDNN_DATA_FP8_E4M3, HIPDNN_DATA_FLOAT});
  const std::vector<std::int64_t>& dims = blocks.wide.dims;
  if (dims.size() > kMostRank || blocks.narrow.dims != dims || blocks.scale.dims.size() != dims.size()) {
    throw Refusal(text(describe(blocks.wide), ", ", describe(blocks.narrow), " and ", describe(blocks.scale), " do not fit"));
  }
  const std::vector<std::int64_t> sizes = stated_sizes(graph, blocks);
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (sizes[d] < 1 || (dims[d] + sizes[d] - 1) / sizes[d] != blocks.scale.dims[d]) {
      throw Refusal(text("blocks of ", show(sizes), " do not divide ", describe(blocks.wide), " into ", describe(blocks.scale)));
    }
    blocks.size[d] = sizes[d];
    elements *= std::min(sizes[d], dims[d]);
  }
  if (elements > kMostBlock) throw Refusal(text("blocks of ", elements, " elements, at most ", kMostBlock));
  return blocks;
}

class BlockScalePlan final : public Plan {
 public:
  BlockScalePlan(const Graph& graph, Blocks blocks, int threads)
      : b_(std::move(blocks)), numbers_(b_.narrow.dtype), scales_(b_.scale.dtype), threads_(std::max(1, threads)) {
    uids_ = pointer_uids(graph);
    load_ = find_conversion(b_.wide.dtype, HIPDNN_DATA_FLOAT);
    store_ = find_conversion(HIPDNN_DATA_FLOAT, b_.wide.dtype);
  }

  std::string describe() const override { return text("block scale ", b_.quantizes ? "quantize" : "dequantize"); }

  void execute(void* const* pointers, void*, const Launch& launch) const override {
    const int threads = launch.threads;
    const auto at = [&](const Tensor& t) { return static_cast<std::byte*>(pointers[std::ranges::find(uids_, t.uid) - uids_.begin()]); };
    const Memory memory{at(b_.wide), at(b_.narrow), at(b_.scale)};
    const std::int64_t count = b_.scale.element_count();
    const int useful = useful_threads(std::min(threads, threads_), count, b_.wide.element_count(), 8);
    parallel_ranges(useful, count, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t block = first; block < last; ++block) run(block, memory);
    });
  }

 private:
  struct Memory {
    std::byte* wide;
    std::byte* narrow;
    std::byte* scale;
  };
  using Index = std::array<std::int64_t, kMostRank>;

  /// Calls body(offset in wide, offset in narrow) for every element of a block, offsets in elements.
  template <class Body>
  void for_each(const Index& block, const Body& body) const {
    const std::size_t rank = b_.wide.dims.size();
    Index begin{}, end{}, at{};
    for (std::size_t d = 0; d < rank; ++d) {
      begin[d] = at[d] = block[d] * b_.size[d];
      end[d] = std::min(begin[d] + b_.size[d], b_.wide.dims[d]);
    }
    for (;;) {
      std::int64_t wide = 0, narrow = 0;
      for (std::size_t d = 0; d < rank; ++d) {
        wide += at[d] * b_.wide.strides[d];
        narrow += at[d] * b_.narrow.strides[d];
      }
      body(wide, narrow);
      std::size_t d = rank;
      while (d > 0 && ++at[d - 1] == end[d - 1]) --d, at[d] = begin[d];
      if (d == 0) return;
    }
  }

  float load(const Memory& memory, std::int64_t offset) const {
    float value = 0.0F;
    TileArgs args{.dst = &value};
    args.src[0] = memory.wide + offset * static_cast<std::int64_t>(element_bytes(b_.wide.dtype));
    load_(args);
    return value;
  }

  void store(const Memory& memory, std::int64_t offset, float value) const {
    TileArgs args{.dst = memory.wide + offset * static_cast<std::int64_t>(element_bytes(b_.wide.dtype))};
    args.src[0] = &value;
    store_(args);
  }

  void run(std::int64_t number, const Memory& memory) const {
    Index block{};
    std::int64_t scale_at = 0;
    for (std::size_t d = b_.scale.dims.size(); d-- > 0; number /= b_.scale.dims[d]) {
      block[d] = number % b_.scale.dims[d];
      scale_at += block[d] * b_.scale.strides[d];
    }
    if (b_.quantizes) return quantize(block, memory, scale_at);
    const float scale = read_scale(memory.scale, scale_at);
    for_each(block, [&](std::int64_t wide, std::int64_t narrow) {
      store(memory, wide, read_number(memory.narrow, narrow) * scale);
    });
  }

  void quantize(const Index& block, const Memory& memory, std::int64_t scale_at) const {
    std::array<float, kMostBlock> values;  // NOLINT: filled up to `count` before use
    std::size_t count = 0;
    float greatest = 0.0F;
    for_each(block, [&](std::int64_t wide, std::int64_t) {
      values[count] = load(memory, wide);
      greatest = std::max(greatest, std::fabs(values[count++]));
    });
    const float scale = write_scale(memory.scale, scale_at, greatest / numbers_.greatest());
    std::size_t i = 0;
    for_each(block, [&](std::int64_t, std::int64_t narrow) {
      const float x = values[i++];
      memory.narrow[narrow] = static_cast<std::byte>(numbers_.nearest(scale == 0.0F && x == 0.0F ? 0.0F : x / scale));
    });
  }

  float read_number(const std::byte* memory, std::int64_t at) const {
    if (b_.narrow.dtype == HIPDNN_DATA_INT4) return static_cast<float>(int4_at(memory, at));
    return numbers_.value(static_cast<std::uint8_t>(memory[at]));
  }

  float read_scale(const std::byte* memory, std::int64_t at) const {
    if (b_.scale.dtype != HIPDNN_DATA_FLOAT) return scales_.value(static_cast<std::uint8_t>(memory[at]));
    float scale = 0.0F;
    std::memcpy(&scale, memory + at * static_cast<std::int64_t>(sizeof scale), sizeof scale);
    return scale;
  }

  /// Stores the scale, rounded up to its type, and returns what was stored.
  float write_scale(std::byte* memory, std::int64_t at, float scale) const {
    if (b_.scale.dtype != HIPDNN_DATA_FLOAT) {
      const std::uint8_t code = scales_.not_below(scale);
      memory[at] = static_cast<std::byte>(code);
      return scales_.value(code);
    }
    std::memcpy(memory + at * static_cast<std::int64_t>(sizeof scale), &scale, sizeof scale);
    return scale;
  }

  Blocks b_;
  NarrowFloats numbers_;
  NarrowFloats scales_;
  TileKernel load_, store_;
  int threads_;
};

class BlockScaleEngine final : public Engine {
 public:
  std::string_view name() const override { return "HOST_BLOCK_SCALE_ENGINE"; }

  std::optional<std::string> refuses(const Graph& graph) const override {
    return refusal_of([&] { read_blocks(graph); });
  }

  std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions& options) const override {
    return std::make_unique<BlockScalePlan>(graph, read_blocks(graph), options.threads);
  }
};

}  // namespace

const Engine& block_scale_engine() {
  static const BlockScaleEngine engine;
  return engine;
}

}  // namespace hipdnn_port
