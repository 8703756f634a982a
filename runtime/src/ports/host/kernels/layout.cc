#include "layout.h"

#include "../engines/rowwise_parallel.h"

namespace hipdnn_port::kernels {

void join_dims(Dims& dims, std::span<Dims* const> strides) {
  std::size_t kept = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    const bool joins = kept > 0 && std::ranges::all_of(strides, [&](const Dims* s) {
      std::int64_t whole = 0;
      return !__builtin_mul_overflow((*s)[d], dims[d], &whole) && (*s)[kept - 1] == whole;
    });
    const std::size_t to = joins ? kept - 1 : kept;
    dims[to] = joins ? dims[to] * dims[d] : dims[d];
    for (Dims* s : strides) (*s)[to] = (*s)[d];
    kept = to + 1;
  }
  if (kept == 0) {
    dims.assign(1, 1);
    for (Dims* s : strides) s->assign(1, 0);
    return;
  }
  dims.resize(kept);
  for (Dims* s : strides) s->resize(kept);
}

BlockCopy::BlockCopy(Dims dims, Dims source, Dims destination, std::int64_t element_bytes)
    : dims_(std::move(dims)), source_(std::move(source)), destination_(std::move(destination)), element_bytes_(element_bytes) {
  Dims* const both[] = {&source_, &destination_};
  join_dims(dims_, both);
  rows_ = product(std::span(dims_).first(dims_.size() - 1));
  is_dense_ = dims_.back() == 1 || (source_.back() == 1 && destination_.back() == 1);
}

void BlockCopy::run(const std::byte* source, std::byte* destination, int threads) const {
  const std::int64_t wide = dims_.back();
  const int used = useful_threads(threads, std::max(rows_, wide), rows_ * wide, 1);
  if (rows_ >= used || used == 1) {
    parallel_ranges(used, rows_, [&](std::int64_t first, std::int64_t last, int) { copy_rows(source, destination, first, last); });
    return;
  }
  for (std::int64_t row = 0; row < rows_; ++row) {
    const auto outer = std::span<const std::int64_t>(dims_).first(dims_.size() - 1);
    const std::byte* from = source + offset_of(outer, source_, row) * element_bytes_;
    std::byte* to = destination + offset_of(outer, destination_, row) * element_bytes_;
    parallel_ranges(used, wide, [&](std::int64_t first, std::int64_t last, int) {
      copy_row(from + first * source_.back() * element_bytes_, to + first * destination_.back() * element_bytes_, last - first);
    });
  }
}

void BlockCopy::copy_rows(const std::byte* source, std::byte* destination, std::int64_t first, std::int64_t last) const {
  if (first >= last || dims_.back() == 0) return;
  const std::size_t inner = dims_.size() - 1;
  std::array<std::int64_t, max_rank> position{};
  std::int64_t rest = first;
  for (std::size_t d = inner; d-- > 0;) {
    position[d] = rest % dims_[d];
    rest /= dims_[d];
    source += position[d] * source_[d] * element_bytes_;
    destination += position[d] * destination_[d] * element_bytes_;
  }
  for (std::int64_t row = first; row < last; ++row) {
    copy_row(source, destination, dims_[inner]);
    for (std::size_t d = inner; d-- > 0;) {
      source += source_[d] * element_bytes_;
      destination += destination_[d] * element_bytes_;
      if (++position[d] < dims_[d] || d == 0) break;
      source -= dims_[d] * source_[d] * element_bytes_;
      destination -= dims_[d] * destination_[d] * element_bytes_;
      position[d] = 0;
    }
  }
}

void BlockCopy::copy_row(const std::byte* source, std::byte* destination, std::int64_t count) const {
  if (is_dense_) {
    // A program's steps may read what they write; what they then compute is the program's affair.
    std::memmove(destination, source, static_cast<std::size_t>(count * element_bytes_));
    return;
  }
  for_element_size(element_bytes_, [&]<class T>(T) {
    const T* from = reinterpret_cast<const T*>(source);
    T* to = reinterpret_cast<T*>(destination);
    const std::int64_t from_step = source_.back();
    const std::int64_t to_step = destination_.back();
    for (std::int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
  });
}

}  // namespace hipdnn_port::kernels
