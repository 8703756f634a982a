// Slices moved between computed positions, and the positions themselves.
#pragma once

#include <array>
#include <span>

#include "kernel.h"
#include "layout.h"

namespace hipdnn_port::kernels {

/// Where a slice comes from and goes to, in elements.
struct Move {
  std::int64_t source = 0;
  std::int64_t destination = 0;
};

/// Moves that are worked on at once.
inline constexpr std::int64_t move_chunk = 256;
using Moves = std::array<Move, move_chunk>;

/// Dims or strides `first` to `last` - 1.
inline Dims part(const Dims& dims, std::size_t first, std::size_t last) {
  return {dims.begin() + static_cast<std::ptrdiff_t>(first), dims.begin() + static_cast<std::ptrdiff_t>(last)};
}

inline Dims joined(Dims a, const Dims& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Calls body(i, offset) for positions first + i of a walk, i from 0 to `count` - 1.
template <class Body>
void for_offsets(const Walk& walk, std::int64_t first, std::int64_t count, const Body& body) {
  std::size_t i = 0;
  const std::int64_t stride = walk.inner_stride();
  walk.for_runs(first, count, [&](std::int64_t offset, std::int64_t run) {
    for (std::int64_t k = 0; k < run; ++k) body(i++, offset + k * stride);
  });
}

/// Copies one slice for every move.
inline void move_slices(const BlockCopy& slice, std::int64_t element_bytes, std::span<const Move> moves, const std::byte* source,
                        std::byte* destination) {
  if (slice.is_contiguous() && slice.bytes() == element_bytes) {
    for_element_size(element_bytes, [&]<class T>(T) {
      for (const Move& move : moves) reinterpret_cast<T*>(destination)[move.destination] = reinterpret_cast<const T*>(source)[move.source];
    });
  } else if (slice.is_contiguous()) {
    const auto size = static_cast<std::size_t>(slice.bytes());
    for (const Move& move : moves) std::memmove(destination + move.destination * element_bytes, source + move.source * element_bytes, size);
  } else {
    for (const Move& move : moves) slice(source + move.source * element_bytes, destination + move.destination * element_bytes);
  }
}

}  // namespace hipdnn_port::kernels
