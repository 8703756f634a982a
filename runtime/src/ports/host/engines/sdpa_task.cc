#include "sdpa_task.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace hipdnn_port {
namespace {

constexpr std::int64_t kKeyBlock = 256;   ///< keys whose scores, features and values stay in the second-level cache
constexpr std::int64_t kRowBlock = 48;    ///< rows whose scores do
constexpr std::int64_t kFewRows = 3;      ///< up to here keys are read as they lie instead of being transposed first

std::int64_t padded(std::int64_t count) { return (count + kColumnStep - 1) / kColumnStep * kColumnStep; }

/// Rows and columns of a matrix in memory, strides in elements.
struct Matrix {
  const void* from = nullptr;
  hipdnnDataType_t dtype = HIPDNN_DATA_FLOAT;
  std::int64_t row = 0;
  std::int64_t col = 0;
};

/// to[r * to_row + c] = float(from[r, c]).
void widen(const Matrix& m, std::int64_t rows, std::int64_t cols, float* to, std::int64_t to_row) {
  TileArgs args{.rows = rows, .cols = cols, .dst = to, .dst_row = to_row, .dst_col = 1};
  args.src[0] = m.from;
  args.src_row[0] = m.row;
  args.src_col[0] = m.col;
  find_conversion(m.dtype, HIPDNN_DATA_FLOAT)(args);
}

void clear_columns(float* block, std::int64_t rows, std::int64_t row, std::int64_t first, std::int64_t last) {
  if (first == last) return;
  for (std::int64_t r = 0; r < rows; ++r) std::fill(block + r * row + first, block + r * row + last, 0.0f);
}

float element_as_float(const SdpaOperand& operand, void* const* pointers) {
  float value = 0.0f;
  widen({.from = operand.at(pointers, 0, 0, 0), .dtype = operand.dtype}, 1, 1, &value, 1);
  return value;
}

}  // namespace

/// One task under way.
class SdpaRun {
 public:
  SdpaRun(const SdpaBlocks& blocks, const SdpaTask& task, void* const* pointers, float* scratch)
      : b_(blocks),
        p_(blocks.problem_),
        task_(task),
        pointers_(pointers),
        scratch_(scratch),
        rows_(task.last - task.first),
        query_length_(p_.query_length(pointers, task.batch)),
        key_length_(p_.key_length(pointers, task.batch)),
        scale_(static_cast<float>(p_.scale)),
        is_uniform_(!p_.left_bound && !p_.right_bound && query_length_ == p_.queries) {}

  void run() {
    find_queries();
    if (p_.scale_tensor) scale_ *= element_as_float(*p_.scale_tensor, pointers_);
    start_softmax();
    const KeyRange all = attended_by(0, rows_);
    // The first block of keys writes the results where all rows see it.
    has_results_ = !is_uniform_ || p_.sink || all.first >= all.last;
    if (has_results_) std::fill_n(scratch_ + b_.results_, rows_ * b_.value_depth_, 0.0f);
    // Widened keys and values of few rows are used once: smaller blocks stay in the first-level cache.
    const std::int64_t step = rows_ <= kFewRows && p_.k.dtype != HIPDNN_DATA_FLOAT ? kKeyBlock / 4 : kKeyBlock;
    for (std::int64_t first = all.first; first < all.last; first += step) {
      attend({first, std::min(first + step, all.last)});
      has_results_ = true;
    }
    write_results();
  }

 private:
  std::int64_t head_of(std::int64_t row) const { return task_.first_head + (task_.first + row) / p_.queries; }
  std::int64_t query_of(std::int64_t row) const { return (task_.first + row) % p_.queries; }

  KeyRange attended(std::int64_t row) const {
    if (is_uniform_) return {0, key_length_};
    const std::int64_t query = query_of(row);
    return query < query_length_ ? p_.attended(query, query_length_, key_length_) : KeyRange{};
  }

  /// The smallest range with the keys of all rows in [first, last).
  KeyRange attended_by(std::int64_t first, std::int64_t last) const {
    if (is_uniform_) return {0, key_length_};
    KeyRange all{p_.keys, 0};
    for (std::int64_t row = first; row < last; ++row) {
      const KeyRange one = attended(row);
      if (one.first >= one.last) continue;
      all = {std::min(all.first, one.first), std::max(all.last, one.last)};
    }
    return all;
  }

  /// Nothing seen yet, or the sink alone, whose weight is exp(0).
  void start_softmax() {
    float* const max = scratch_ + b_.max_;
    float* const sum = scratch_ + b_.sum_;
    std::fill_n(max, rows_, -std::numeric_limits<float>::infinity());
    std::fill_n(sum, rows_, 0.0f);
    if (!p_.sink) return;
    for_each_head([&](std::int64_t row, std::int64_t count) {
      float sink = 0.0f;
      std::memcpy(&sink, p_.sink->at(pointers_, task_.batch, head_of(row), 0), sizeof sink);
      if (std::isinf(sink) && sink < 0.0f) return;
      std::fill_n(max + row, count, sink);
      std::fill_n(sum + row, count, 1.0f);
    });
  }

  /// Calls body(row, count) for the runs of rows of one head.
  template <class Body>
  void for_each_head(const Body& body) const {
    for (std::int64_t row = 0; row < rows_;) {
      const std::int64_t count = std::min(rows_ - row, p_.queries - query_of(row));
      body(row, count);
      row += count;
    }
  }

  /// Queries in rows: as they lie where the kernels can read that, else widened and padded.
  void find_queries() {
    const bool is_plain = p_.q.dtype == HIPDNN_DATA_FLOAT && p_.q.strides[3] == 1 && b_.depth_ == p_.depth;
    if (is_plain && head_of(0) == head_of(rows_ - 1)) {
      queries_ = {.from = p_.q.at(pointers_, task_.batch, head_of(0), query_of(0)), .row = p_.q.strides[2], .col = 1};
      return;
    }
    float* const packed = scratch_ + b_.queries_;
    queries_ = {.from = packed, .row = b_.depth_, .col = 1};
    for_each_head([&](std::int64_t row, std::int64_t count) {
      const Matrix from{.from = p_.q.at(pointers_, task_.batch, head_of(row), query_of(row)),
                        .dtype = p_.q.dtype,
                        .row = p_.q.strides[2],
                        .col = p_.q.strides[3]};
      widen(from, count, p_.depth, packed + row * b_.depth_, b_.depth_);
    });
    clear_columns(packed, rows_, b_.depth_, p_.depth, b_.depth_);
  }

  /// Calls body(place, matrix, count) for the keys of a block that lie at equal distances, from a place in the block on: all at once, or page by page.
  template <class Body>
  void for_each_piece(const SdpaOperand& operand, const KeyRange& block, const Body& body) const {
    const bool is_keys = &operand == &p_.k;
    const std::int64_t head = task_.first_head / (is_keys ? p_.heads_per_key_head : p_.heads_per_value_head);
    for (std::int64_t first = block.first; first < block.last;) {
      const HeadRows rows = is_keys ? p_.key_rows(pointers_, task_.batch, head, first, block.last) : p_.value_rows(pointers_, task_.batch, head, first, block.last);
      body(first - block.first, Matrix{.from = rows.from, .dtype = operand.dtype, .row = operand.strides[2], .col = operand.strides[3]}, rows.count);
      first += rows.count;
    }
  }

  /// Rows that the kernels read: as they lie where they can, else widened and padded in `scratch`.
  static Matrix readable(const Matrix& from, std::int64_t count, std::int64_t width, std::int64_t padded_width, float* scratch) {
    if (from.dtype == HIPDNN_DATA_FLOAT && from.col == 1 && padded_width == width) return from;
    return packed(from, count, width, padded_width, scratch);
  }

  static Matrix packed(const Matrix& from, std::int64_t count, std::int64_t width, std::int64_t padded_width, float* scratch) {
    widen(from, count, width, scratch, padded_width);
    clear_columns(scratch, count, padded_width, width, padded_width);
    return {.from = scratch, .row = padded_width, .col = 1};
  }

  /// Keys in columns.
  void transpose_keys(const KeyRange& block) {
    const std::int64_t all = block.last - block.first;
    float* const columns = scratch_ + b_.keys_;
    for_each_piece(p_.k, block, [&](std::int64_t place, Matrix from, std::int64_t count) {
      if (from.dtype != HIPDNN_DATA_FLOAT && from.col == 1) {  // transposing is quick for float32
        widen(from, count, p_.depth, scratch_ + b_.rows_, b_.depth_);
        from = {.from = scratch_ + b_.rows_, .row = b_.depth_, .col = 1};
      }
      std::swap(from.row, from.col);
      widen(from, p_.depth, count, columns + place, b_.key_columns_);
    });
    clear_columns(columns, p_.depth, b_.key_columns_, all, padded(all));
  }

  /// Values of a block as one matrix.
  Matrix value_block(const KeyRange& block) {
    float* const rows = scratch_ + b_.values_;
    const std::int64_t all = block.last - block.first;
    Matrix found;
    for_each_piece(p_.v, block, [&](std::int64_t place, const Matrix& from, std::int64_t count) {
      const auto make = count == all ? readable : packed;
      const Matrix made = make(from, count, p_.value_depth, b_.value_depth_, rows + place * b_.value_depth_);
      if (place == 0) found = made;
    });
    return found;
  }

  void attend(const KeyRange& block) {
    if (rows_ <= kFewRows) {
      attend_few(block);
      return;
    }
    const std::int64_t count = block.last - block.first;
    transpose_keys(block);
    const Matrix values = value_block(block);
    float* const scores = scratch_ + b_.scores_;
    for (std::int64_t row = 0; row < rows_; row += kRowBlock) {
      const std::int64_t rows = std::min(kRowBlock, rows_ - row);
      const KeyRange seen = attended_by(row, row + rows);
      if (seen.last <= block.first || seen.first >= block.last) continue;
      b_.kernels_.product({.rows = rows,
                           .columns = padded(count),
                           .depth = p_.depth,
                           .a = static_cast<const float*>(queries_.from) + row * queries_.row,
                           .a_row = queries_.row,
                           .b = scratch_ + b_.keys_,
                           .b_row = b_.key_columns_,
                           .c = scores,
                           .c_row = kKeyBlock});
      for (std::int64_t r = 0; r < rows; ++r) weigh(row + r, scores + r * kKeyBlock, block);
      add_values(row, rows, scores, values, count, has_results_);
    }
  }

  /// The same for rows that are so few that keys and values are read as they lie.
  void attend_few(const KeyRange& block) {
    const KeyRange seen = attended_by(0, rows_);
    if (seen.last <= block.first || seen.first >= block.last) return;
    float* const scores = scratch_ + b_.scores_;
    for_each_piece(p_.k, block, [&](std::int64_t place, const Matrix& from, std::int64_t count) {
      const Matrix keys = readable(from, count, p_.depth, b_.depth_, scratch_ + b_.rows_);
      b_.kernels_.dots({.rows = rows_,
                        .columns = count,
                        .depth = b_.depth_,
                        .a = static_cast<const float*>(queries_.from),
                        .a_row = queries_.row,
                        .b = static_cast<const float*>(keys.from),
                        .b_row = keys.row,
                        .c = scores + place,
                        .c_row = kKeyBlock});
    });
    for (std::int64_t row = 0; row < rows_; ++row) weigh(row, scores + row * kKeyBlock, block);
    for_each_piece(p_.v, block, [&](std::int64_t place, const Matrix& from, std::int64_t count) {
      const Matrix values = readable(from, count, p_.value_depth, b_.value_depth_, scratch_ + b_.values_);
      add_values(0, rows_, scores + place, values, count, has_results_ || place > 0);
    });
  }

  /// Adds weights times values to the results of some rows, or writes them where there is nothing to add to.
  void add_values(std::int64_t row, std::int64_t rows, const float* weights, const Matrix& values, std::int64_t count, bool accumulates) {
    b_.kernels_.product({.rows = rows,
                         .columns = b_.value_depth_,
                         .depth = count,
                         .a = weights,
                         .a_row = kKeyBlock,
                         .b = static_cast<const float*>(values.from),
                         .b_row = values.row,
                         .c = scratch_ + b_.results_ + row * b_.value_depth_,
                         .c_row = b_.value_depth_,
                         .accumulates = accumulates});
  }

  /// The scores of a row become weights.
  void weigh(std::int64_t row, float* scores, const KeyRange& block) {
    const KeyRange seen = attended(row);
    const std::int64_t count = block.last - block.first;
    const std::int64_t first = std::clamp<std::int64_t>(seen.first - block.first, 0, count);
    const std::int64_t last = std::clamp<std::int64_t>(seen.last - block.first, 0, count);
    const bool is_capped = p_.soft_cap > 0.0;
    if (is_capped && first < last) b_.kernels_.soft_cap(scores + first, last - first, scale_, static_cast<float>(p_.soft_cap));
    b_.kernels_.softmax({.scores = scores,
                         .count = count,
                         .first = first,
                         .last = last,
                         .scale = is_capped ? 1.0f : scale_,
                         .mask = p_.mask ? mask_of(row, block) : nullptr,
                         .mask_selects = p_.mask && p_.mask->dtype == HIPDNN_DATA_BOOLEAN,
                         .max = scratch_ + b_.max_ + row,
                         .sum = scratch_ + b_.sum_ + row,
                         .out = scratch_ + b_.results_ + row * b_.value_depth_,
                         .out_count = b_.value_depth_});
  }

  /// The mask of a row for a block of keys, in the mask's memory where that is float32 without gaps.
  const float* mask_of(std::int64_t row, const KeyRange& block) {
    const SdpaOperand& mask = *p_.mask;
    const bool is_common = mask.strides[1] == 0 && mask.strides[2] == 0;  // saves two divisions a row
    const std::byte* from = mask.at(pointers_, task_.batch, is_common ? 0 : head_of(row), is_common ? 0 : query_of(row)) +
                            block.first * mask.strides[3] * static_cast<std::int64_t>(element_bytes(mask.dtype));
    if (mask.dtype == HIPDNN_DATA_FLOAT && mask.strides[3] == 1) return reinterpret_cast<const float*>(from);
    float* const widened = scratch_ + b_.mask_;
    if (from != widened_mask_) widen({.from = from, .dtype = mask.dtype, .col = mask.strides[3]}, 1, block.last - block.first, widened, kKeyBlock);
    widened_mask_ = mask.strides[3] == 0 ? nullptr : from;
    return widened;
  }

  void write_results() {
    float* const results = scratch_ + b_.results_;
    for (std::int64_t row = 0; row < rows_; ++row) {
      const float sum = scratch_[b_.sum_ + row];
      // No key attended: the weights are 0, not 0 / 0.
      b_.kernels_.scale(results + row * b_.value_depth_, b_.value_depth_, sum == 0.0f ? 0.0f : 1.0f / sum);
      write_statistics(row);
    }
    for_each_head([&](std::int64_t row, std::int64_t count) {
      TileArgs args{.rows = count,
                    .cols = p_.value_depth,
                    .dst = p_.o.at_output(pointers_, task_.batch, head_of(row), query_of(row)),
                    .dst_row = p_.o.strides[2],
                    .dst_col = p_.o.strides[3]};
      args.src[0] = results + row * b_.value_depth_;
      args.src_row[0] = b_.value_depth_;
      args.src_col[0] = 1;
      find_conversion(HIPDNN_DATA_FLOAT, p_.o.dtype)(args);
    });
  }

  void write_statistics(std::int64_t row) {
    const auto write = [&](const std::optional<SdpaOperand>& to, float value) {
      if (to) std::memcpy(to->at_output(pointers_, task_.batch, head_of(row), query_of(row)), &value, sizeof value);
    };
    const float max = scratch_[b_.max_ + row];
    const float sum = scratch_[b_.sum_ + row];
    write(p_.max, max);
    write(p_.sum_exp, sum);
    if (p_.stats) write(p_.stats, sum == 0.0f ? max : max + std::log(sum));
  }

  const SdpaBlocks& b_;
  const SdpaProblem& p_;
  const SdpaTask& task_;
  void* const* pointers_;
  float* scratch_;
  std::int64_t rows_;
  std::int64_t query_length_;
  std::int64_t key_length_;
  float scale_;
  Matrix queries_;
  bool is_uniform_;            ///< every query attends the same keys
  bool has_results_ = false;   ///< results hold something to add to
  const std::byte* widened_mask_ = nullptr;  ///< source of what the mask's scratch holds
};

SdpaBlocks::SdpaBlocks(SdpaProblem problem, std::int64_t most_rows)
    : problem_(std::move(problem)),
      kernels_(tile_kernels().attention),
      depth_(padded(problem_.depth)),
      value_depth_(padded(problem_.value_depth)),
      key_columns_(std::min(kKeyBlock, padded(problem_.keys))) {
  const auto place = [&](std::int64_t& offset, std::int64_t floats) {
    offset = scratch_floats_;
    scratch_floats_ += padded(floats);
  };
  place(queries_, most_rows * depth_);
  place(scores_, std::min(kRowBlock, most_rows) * kKeyBlock);
  place(keys_, problem_.depth * key_columns_);
  place(rows_, key_columns_ * depth_);
  place(values_, key_columns_ * value_depth_);
  place(results_, most_rows * value_depth_);
  place(max_, most_rows);
  place(sum_, most_rows);
  place(mask_, kKeyBlock);
}

void SdpaBlocks::run(const SdpaTask& task, void* const* pointers, std::byte* scratch) const {
  SdpaRun(*this, task, pointers, reinterpret_cast<float*>(scratch)).run();
}

}  // namespace hipdnn_port
