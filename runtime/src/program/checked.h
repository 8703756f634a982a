// Unsigned and signed 64-bit arithmetic that answers nothing instead of wrapping.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>

namespace hipdnn_rt {

inline constexpr std::int64_t kInt64Min = std::numeric_limits<std::int64_t>::min();
inline constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

template <std::integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  T result{};
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <std::integral T>
constexpr std::optional<T> checked_multiply(T a, T b) {
  T result{};
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// Elements of a tensor, at most: with strides of 0 a file of a few bytes could ask for any amount of work on a few bytes of memory.
inline constexpr std::uint64_t kElementsLimit = std::uint64_t{1} << 40;

/// True where `offset + bytes` neither wraps nor passes `size`.
template <std::unsigned_integral T>
constexpr bool is_within(T offset, T bytes, T size) {
  return offset <= size && bytes <= size - offset;
}

}  // namespace hipdnn_rt
