// Work along one dim: every other position of a tensor is a line.
#pragma once

#include "../engines/rowwise_parallel.h"
#include "kernel.h"
#include "layout.h"

namespace hipdnn_port::kernels {

/// The lines of tensors that agree in all dims but `axis`.
class Lines {
 public:
  Lines() = default;
  Lines(const Dims& dims, std::size_t axis) : dims_(without(dims, axis)), axis_(axis), count_(product(dims_)) {}

  std::int64_t count() const { return count_; }
  /// Where line `line` starts in a tensor of these strides.
  std::int64_t start(const Dims& strides, std::int64_t line) const {
    std::int64_t offset = 0;
    for (std::size_t d = dims_.size(); d-- > 0;) {
      offset += line % dims_[d] * strides[d < axis_ ? d : d + 1];
      line /= dims_[d];
    }
    return offset;
  }

  /// Calls body(line) for all lines of about `work` elements each.
  template <class Body>
  void for_all(int threads, std::int64_t work, const Body& body) const {
    parallel_ranges(useful_threads(threads, count_, count_ * work, 2), count_, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t line = first; line < last; ++line) body(line);
    });
  }

 private:
  static Dims without(Dims dims, std::size_t axis) {
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
    return dims;
  }

  Dims dims_;
  std::size_t axis_ = 0;
  std::int64_t count_ = 0;
};

/// Refuses tensor `index` unless its dims are those of tensor 0 with `size` along `axis`.
inline void expect_line_dims(const Image& image, std::size_t index, std::size_t axis, std::int64_t size) {
  Dims expected = image.tensors[0].dims;
  expected[axis] = size;
  image.expect_dims(index, expected);
}

inline void expect_i64(const Image& image, std::size_t index) {
  if (image.tensors[index].dtype != DType::i64) refuse("tensors[", index, "].dtype: expected i64, got ", info_of(image.tensors[index].dtype).name);
}

}  // namespace hipdnn_port::kernels
