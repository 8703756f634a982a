// Walks over strided arrays: dims joined where they advance as one, runs along the innermost one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "image.h"

namespace hipdnn_port::kernels {

/// Drops dims of size 1 and joins neighbours that every one of `strides` lets advance as one. At least one dim stays.
void join_dims(Dims& dims, std::span<Dims* const> strides);

/// One array over an iteration space of C order, with dims joined for it alone. Strides may be 0 or negative.
struct Walk {
  Dims dims;
  Dims strides;

  Walk() = default;
  Walk(Dims space, Dims steps) : dims(std::move(space)), strides(std::move(steps)) {
    Dims* const only[] = {&strides};
    join_dims(dims, only);
  }

  std::int64_t inner_dim() const { return dims.back(); }
  std::int64_t inner_stride() const { return strides.back(); }
  bool is_uniform() const { return dims.size() == 1 && (dims[0] == 1 || strides[0] == 0); }

  /// Calls body(offset, count) for the runs that cover positions [first, first + count) of the space, in order: `count` elements from
  /// `offset` on, inner_stride() apart.
  template <class Body>
  void for_runs(std::int64_t first, std::int64_t count, const Body& body) const {
    if (count <= 0) return;
    std::array<std::int64_t, max_rank> position;
    const std::size_t inner = dims.size() - 1;
    std::int64_t offset = 0;
    for (std::size_t d = inner; d > 0; --d) {
      position[d] = first % dims[d];
      first /= dims[d];
      offset += position[d] * strides[d];
    }
    position[0] = first;
    offset += first * strides[0];
    while (count > 0) {
      const std::int64_t run = std::min(count, dims[inner] - position[inner]);
      body(offset, run);
      count -= run;
      position[inner] += run;
      offset += run * strides[inner];
      for (std::size_t d = inner; d > 0 && position[d] == dims[d]; --d) {
        offset += strides[d - 1] - dims[d] * strides[d];
        position[d] = 0;
        ++position[d - 1];
      }
    }
  }
};

/// Elements moved as they are, by their size.
template <class Body>
void for_element_size(std::int64_t bytes, const Body& body) {
  switch (bytes) {
    case 1: body(std::uint8_t{}); break;
    case 2: body(std::uint16_t{}); break;
    case 4: body(std::uint32_t{}); break;
    default: body(std::uint64_t{}); break;
  }
}

/// A block of elements copied between two strided arrays over the same dims. Strides may be negative in the source.
class BlockCopy {
 public:
  BlockCopy() = default;
  BlockCopy(Dims dims, Dims source, Dims destination, std::int64_t element_bytes);

  /// Copies the block. Thread-safe.
  void operator()(const std::byte* source, std::byte* destination) const { copy_rows(source, destination, 0, rows_); }
  /// As above with work shared by threads where the block is large.
  void run(const std::byte* source, std::byte* destination, int threads) const;
  /// Whether the block is `bytes()` consecutive bytes on both sides.
  bool is_contiguous() const { return rows_ == 1 && is_dense_; }
  std::int64_t bytes() const { return rows_ * dims_.back() * element_bytes_; }

 private:
  void copy_rows(const std::byte* source, std::byte* destination, std::int64_t first, std::int64_t last) const;
  void copy_row(const std::byte* source, std::byte* destination, std::int64_t count) const;

  Dims dims_;
  Dims source_;
  Dims destination_;
  std::int64_t element_bytes_ = 1;
  std::int64_t rows_ = 0;
  /// Elements of a row follow each other on both sides.
  bool is_dense_ = false;
};

/// Where element `position` (in C order) of a tensor lies, in elements from its first.
inline std::int64_t offset_of(std::span<const std::int64_t> dims, std::span<const std::int64_t> strides, std::int64_t position) {
  std::int64_t offset = 0;
  for (std::size_t d = dims.size(); d-- > 0;) {
    offset += position % dims[d] * strides[d];
    position /= dims[d];
  }
  return offset;
}

}  // namespace hipdnn_port::kernels
