// `expert_matmul`: rows times the weights of the experts that are chosen for each, which alone are read.
#include <algorithm>
#include <array>

#include "../engines/kernels_tile.h"
#include "../engines/packed_memory.h"
#include "../engines/rowwise_parallel.h"
#include "functions.h"
#include "moves.h"

namespace hipdnn_port::kernels {
namespace {

constexpr std::int64_t kColumns = 64;   ///< of a part of the work at least
constexpr std::int64_t kMostColumns = 512;
constexpr std::int64_t kParts = 4;      ///< of each thread, where there is so much to do
constexpr std::int64_t kTogether = 4;   ///< columns whose weights are floats at a time
constexpr std::int64_t kDepth = 1024;   ///< elements of them: they stay in the first-level cache
constexpr std::int64_t kPairs = 128;    ///< of a row and a choice that meet these
constexpr std::size_t kFew = 3;         ///< up to here floats of codes are not worth storing
constexpr std::size_t kMany = 40;       ///< from here on products of tiles pay for rows in another order
constexpr std::int64_t kTileDepth = 128;
static_assert(kTogether == kCodeColumns && kTogether == kDotColumns && kPairs % kColumnStep == 0);
constexpr std::size_t kX = 0, kExperts = 1, kWeights = 2, kScales = 3, kZeros = 4;

using Sums = std::array<float[kTogether], kPairs>;

class ExpertMatmul : public Kernel {
 public:
  explicit ExpertMatmul(const Image& image) : Kernel(image), out_(image.tensors.size() - 1), bits_(bits_of(image)) {
    image.attributes.expect_only({"bits", "block_size"});
    const bool has_zeros = bits_ != 0 && image.inputs == kZeros + 1;
    image.expect_counts(bits_ == 0 ? kScales : has_zeros ? kZeros + 1 : kZeros, 1);
    for (std::size_t i = 0; i < image.tensors.size(); ++i) {
      const std::size_t rank = i == kExperts ? 2 : 3;
      if (tensor(i).rank() != rank) refuse("tensors[", i, "].dims: expected ", rank, " dims, got ", show(tensor(i).dims));
    }
    expect_dtype(kX, DType::f32);
    expect_dtype(out_, DType::f32);
    expect_index_dtype(image, kExperts);
    const Dims& x = tensor(kX).dims;
    const Dims& chosen = tensor(kExperts).dims;
    depth_ = x[2];
    columns_ = tensor(kWeights).dims[1];
    if (chosen[0] != x[0] || (x[1] != 1 && x[1] != chosen[1])) refuse("tensors[0].dims: expected [", chosen[0], ", 1 or ", chosen[1], ", depth], got ", show(x));
    image.expect_dims(out_, {chosen[0], chosen[1], columns_});
    for (std::size_t i = kWeights; i < out_; ++i) {
      if (!tensor(i).is_packed()) refuse("tensors[", i, "].strides: expected rows without gaps");
    }
    if (bits_ == 0) {
      expect_floats();
    } else {
      expect_codes(image, has_zeros);
    }
  }

 private:
  static std::int64_t bits_of(const Image& image) {
    const std::int64_t bits = image.attributes.integer("bits", 0, 8);
    if (bits != 0 && bits != 4 && bits != 8) refuse("attributes.bits: expected 0, 4 or 8, got ", bits);
    return bits;
  }

  void expect_dtype(std::size_t index, DType wanted) const {
    if (tensor(index).dtype != wanted) {
      refuse("tensors[", index, "].dtype: expected ", info_of(wanted).name, ", got ", info_of(tensor(index).dtype).name);
    }
  }

  void expect_floats() const {
    const DType dtype = tensor(kWeights).dtype;
    if (dtype != DType::f32 && !is_half(dtype)) refuse("tensors[2].dtype: expected f32, f16 or bf16, got ", info_of(dtype).name);
    if (tensor(kWeights).dims[2] != depth_) refuse("tensors[2].dims: expected rows of ", depth_, ", got ", show(tensor(kWeights).dims));
  }

  void expect_codes(const Image& image, bool has_zeros) {
    expect_dtype(kWeights, DType::u8);
    block_ = image.attributes.integer("block_size", 2, std::int64_t{1} << 32);
    if (block_ % 2 != 0) refuse("attributes.block_size: expected an even number, got ", block_);
    blocks_ = (depth_ + block_ - 1) / block_;
    row_bytes_ = tensor(kWeights).dims[2];
    if (row_bytes_ * 8 != depth_ * bits_) refuse("tensors[2].dims: expected rows of ", depth_, " codes, got ", show(tensor(kWeights).dims));
    const Dims per_block{tensor(kWeights).dims[0], columns_, blocks_};
    image.expect_dims(kScales, per_block);
    expect_dtype(kScales, DType::f32);
    if (!has_zeros) return;
    image.expect_dims(kZeros, per_block);
    expect_dtype(kZeros, DType::u8);
    has_zeros_ = true;
  }

  void run(const Operands& operands, int threads) const override {
    const Tensor& chosen = tensor(kExperts);
    const std::int64_t experts = tensor(kWeights).dims[0];
    IndexCheck check;
    for (std::int64_t pair = 0; pair < chosen.elements(); ++pair) check.position(expert_of(operands, pair), experts);
    check.finish(kExperts);
    // Neighbours are of different experts, so that every thread meets all that are chosen.
    std::int64_t width = kMostColumns;
    while (width > kColumns && (columns_ + width - 1) / width * experts < kParts * threads) width /= 2;
    const std::int64_t parts = (columns_ + width - 1) / width * experts;
    const int used = useful_threads(threads, parts, chosen.elements() * columns_ * depth_ / 16, 0);
    parallel_ranges(used, parts, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t part = first; part < last; ++part) {
        const std::int64_t column = part / experts * width;
        run_part(operands, part % experts, column, std::min(column + width, columns_));
      }
    });
  }

  std::int64_t expert_of(const Operands& operands, std::int64_t pair) const {
    const Tensor& chosen = tensor(kExperts);
    const std::int64_t at = pair / chosen.dims[1] * chosen.strides[0] + pair % chosen.dims[1] * chosen.strides[1];
    const std::int64_t index = read_index(operands.at(kExperts), chosen.dtype, at);
    return index < 0 ? index + tensor(kWeights).dims[0] : index;
  }

  void run_part(const Operands& operands, std::int64_t expert, std::int64_t column, std::int64_t last) const {
    std::array<std::int64_t, kPairs> pairs;  // NOLINT: filled up to count
    for (std::int64_t next = 0, all = tensor(kExperts).elements(); next < all;) {
      std::size_t count = 0;
      for (; next < all && count < pairs.size(); ++next) {
        if (expert_of(operands, next) == expert) pairs[count++] = next;
      }
      if (count == 0) return;
      if (count >= kMany) {
        multiply_tiles(operands, expert, column, last - column, std::span(pairs).first(count));
        continue;
      }
      for (std::int64_t c = column; c < last; c += kTogether) {
        if (count <= kFew && can_use_codes(last - c)) {
          multiply_codes(operands, expert, c, std::span(pairs).first(count));
          continue;
        }
        run_columns(operands, expert, c, std::min(kTogether, last - c), std::span(pairs).first(count));
      }
    }
  }

  /// Whether rows can meet these columns' codes without floats in between.
  bool can_use_codes(std::int64_t columns) const {
    const bool is_whole = bits_ == 4 && block_ % kCodeStep == 0 && depth_ % block_ == 0 && columns >= kCodeColumns;
    return is_whole && tensor(kX).strides[2] == 1 && tile_kernels().codes.dots_of_4 != nullptr;
  }

  void multiply_codes(const Operands& operands, std::int64_t expert, std::int64_t column, std::span<const std::int64_t> pairs) const {
    const std::int64_t row = expert * columns_ + column;
    Sums sums{};
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      tile_kernels().codes.dots_of_4({.a = row_of(operands, pairs[p]),
                                      .blocks = blocks_,
                                      .block = block_,
                                      .codes = operands.at<const std::uint8_t>(kWeights) + row * row_bytes_,
                                      .scales = operands.at<const float>(kScales) + row * blocks_,
                                      .zeros = has_zeros_ ? operands.at<const std::uint8_t>(kZeros) + row * blocks_ : nullptr,
                                      .sums = sums[p]});
    }
    write(operands, column, kCodeColumns, pairs, sums);
  }

  /// All columns of a part, as the left operand of a product: they are read as they lie. The rows of x, which are fewer, lie beside each other
  /// in the right one.
  void multiply_tiles(const Operands& operands, std::int64_t expert, std::int64_t column, std::int64_t count,
                      std::span<const std::int64_t> pairs) const {
    alignas(64) std::array<float, kColumns * kTileDepth> weights;     // NOLINT: filled where it is read
    alignas(64) std::array<float, kPairs * kTileDepth> right;         // NOLINT: filled where it is read
    alignas(64) std::array<float, kMostColumns * kPairs> products;    // NOLINT: written by the first product
    std::array<const float*, kPairs> rows;                            // NOLINT: filled up to the pairs
    const auto height = static_cast<std::int64_t>(pairs.size());
    const std::int64_t width = (height + kColumnStep - 1) / kColumnStep * kColumnStep;
    const std::int64_t step = tensor(kX).strides[2];
    const bool is_plain = tensor(kWeights).dtype == DType::f32;
    if (width > height) std::fill(right.begin(), right.begin() + width * kTileDepth, 0.0F);
    for (std::int64_t k = 0; k < depth_; k += kTileDepth) {
      const std::int64_t size = std::min(kTileDepth, depth_ - k);
      for (std::int64_t p = 0; p < height; ++p) {
        rows[static_cast<std::size_t>(p)] = row_of(operands, pairs[static_cast<std::size_t>(p)]) + k * step;
      }
      turn(rows.data(), step, height, size, right.data(), width);
      for (std::int64_t first = 0; first < count; first += kColumns) {
        const std::int64_t now = std::min(kColumns, count - first), row = expert * columns_ + column + first;
        for (std::int64_t c = 0; c < now && !is_plain; ++c) floats_of(operands, row + c, k, size, weights.data() + c * kTileDepth);
        tile_kernels().attention.product({.rows = now,
                                          .columns = width,
                                          .depth = size,
                                          .a = is_plain ? operands.at<const float>(kWeights) + row * depth_ + k : weights.data(),
                                          .a_row = is_plain ? depth_ : kTileDepth,
                                          .b = right.data(),
                                          .b_row = width,
                                          .c = products.data() + first * kPairs,
                                          .c_row = kPairs,
                                          .accumulates = k > 0});
      }
    }
    const Tensor& out = tensor(out_);
    auto* const to = operands.at<float>(out_) + column * out.strides[2];
    for (std::int64_t first = 0; first < count; first += kColumnStep) {
      const std::int64_t last = std::min(first + kColumnStep, count);
      for (std::int64_t p = 0; p < height; ++p) {
        float* const row = to + place_of(pairs[static_cast<std::size_t>(p)]);
        for (std::int64_t c = first; c < last; ++c) row[c * out.strides[2]] = products[static_cast<std::size_t>(c * kPairs + p)];
      }
    }
  }

  /// Rows become columns, a few cache lines of the result at a time.
  static void turn(const float* const* rows, std::int64_t step, std::int64_t count, std::int64_t size, float* to, std::int64_t to_row) {
    for (std::int64_t first = 0; first < size; first += kColumnStep) {
      const std::int64_t last = std::min(first + kColumnStep, size);
      for (std::int64_t r = 0; r < count; ++r) {
        for (std::int64_t i = first; i < last; ++i) to[i * to_row + r] = rows[r][i * step];
      }
    }
  }

  /// Where the results of a row and a choice begin.
  std::int64_t place_of(std::int64_t pair) const {
    const Tensor& out = tensor(out_);
    return pair / out.dims[1] * out.strides[0] + pair % out.dims[1] * out.strides[1];
  }

  /// The row of x that a row and a choice are computed from.
  const float* row_of(const Operands& operands, std::int64_t pair) const {
    const Tensor& x = tensor(kX);
    const std::int64_t choices = tensor(kExperts).dims[1];
    const std::int64_t choice = x.dims[1] == 1 ? 0 : pair % choices;
    return operands.at<const float>(kX) + pair / choices * x.strides[0] + choice * x.strides[1];
  }

  void run_columns(const Operands& operands, std::int64_t expert, std::int64_t column, std::int64_t count, std::span<const std::int64_t> pairs) const {
    alignas(64) std::array<float, kTogether * kDepth> weights;  // NOLINT: filled where it is read
    alignas(64) std::array<float, kDepth> adjacent;             // NOLINT: filled where it is read
    std::array<const float*, kPairs> rows;                      // NOLINT: filled up to the pairs
    for (std::size_t p = 0; p < pairs.size(); ++p) rows[p] = row_of(operands, pairs[p]);
    const std::int64_t step = tensor(kX).strides[2];
    const bool is_plain = tensor(kWeights).dtype == DType::f32;  // then weights are read where they lie
    Sums sums{};
    for (std::int64_t k = 0; k < depth_; k += kDepth) {
      const std::int64_t size = std::min(kDepth, depth_ - k);
      const float* columns = operands.at<const float>(kWeights) + (expert * columns_ + column) * depth_ + k;
      if (!is_plain) {
        for (std::int64_t c = 0; c < count; ++c) {
          if (bits_ != 0 && column + c + kTogether < columns_) fetch_codes(operands, expert * columns_ + column + c + kTogether, k, size);
          floats_of(operands, expert * columns_ + column + c, k, size, weights.data() + c * kDepth);
        }
        columns = weights.data();
      }
      DotsArgs dots{.rows = rows.data(),
                    .count = static_cast<std::int64_t>(pairs.size()),
                    .first = k,
                    .depth = size,
                    .columns = columns,
                    .column_step = is_plain ? depth_ : kDepth,
                    .width = count,
                    .next = is_plain && column + 2 * kTogether <= columns_ ? columns + kTogether * depth_ : nullptr,
                    .sums = sums.data()};
      if (step == 1) {
        tile_kernels().dots(dots);
        continue;
      }
      dots.count = 1;
      dots.first = 0;
      for (std::size_t p = 0; p < pairs.size(); ++p) {
        for (std::int64_t i = 0; i < size; ++i) adjacent[static_cast<std::size_t>(i)] = rows[p][(k + i) * step];
        const float* const row = adjacent.data();
        dots.rows = &row;
        dots.sums = &sums[p];
        tile_kernels().dots(dots);
      }
    }
    write(operands, column, count, pairs, sums);
  }

  void write(const Operands& operands, std::int64_t column, std::int64_t count, std::span<const std::int64_t> pairs, const Sums& sums) const {
    const Tensor& out = tensor(out_);
    auto* const to = operands.at<float>(out_);
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      const std::int64_t at = place_of(pairs[p]) + column * out.strides[2];
      for (std::int64_t c = 0; c < count; ++c) to[at + c * out.strides[2]] = sums[p][c];
    }
  }

  /// Ask for codes that are needed soon.
  void fetch_codes(const Operands& operands, std::int64_t row, std::int64_t k, std::int64_t size) const {
    const std::uint8_t* const codes = operands.at<const std::uint8_t>(kWeights) + row * row_bytes_ + k * bits_ / 8;
    for (std::int64_t at = 0; at < size * bits_ / 8; at += kLineBytes) __builtin_prefetch(codes + at);
  }

  /// Elements [k, k + size) of a row of weights.
  void floats_of(const Operands& operands, std::int64_t row, std::int64_t k, std::int64_t size, float* to) const {
    const Tensor& weights = tensor(kWeights);
    if (bits_ == 0) {
      TileArgs args{.rows = 1, .cols = size, .dst = to, .dst_row = 0, .dst_col = 1};
      args.src[0] = operands.at(kWeights) + (row * depth_ + k) * weights.bytes();
      args.src_col[0] = 1;
      tile_kernels().convert(weights.dtype, DType::f32)(args);
      return;
    }
    const std::int64_t block = row * blocks_ + k / block_;
    const CodeKernels& codes = tile_kernels().codes;
    (bits_ == 4 ? codes.floats_of_4 : codes.floats_of_8)({.codes = operands.at<const std::uint8_t>(kWeights) + row * row_bytes_ + k * bits_ / 8,
                                                          .first = k % block_,
                                                          .count = size,
                                                          .block = block_,
                                                          .scales = operands.at<const float>(kScales) + block,
                                                          .zeros = has_zeros_ ? operands.at<const std::uint8_t>(kZeros) + block : nullptr,
                                                          .to = to});
  }

  std::size_t out_;
  std::int64_t bits_;
  std::int64_t depth_ = 0, columns_ = 0;
  std::int64_t block_ = 0, blocks_ = 0, row_bytes_ = 0;
  bool has_zeros_ = false;
};

}  // namespace

std::unique_ptr<Kernel> make_expert_matmul(const Image& image) { return std::make_unique<ExpertMatmul>(image); }

}  // namespace hipdnn_port::kernels
