// Floats of 16 bits, from numbers that files state.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace hipdnn_rt {

/// Rounded half to even. Values that came from a 16-bit type stay what they were.
inline std::uint16_t to_half(float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000U : 0U;
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00U);
  constexpr float first_infinite = 65520.0F;
  if (magnitude >= first_infinite) return static_cast<std::uint16_t>(sign | 0x7c00U);
  constexpr int least_exponent = -14, digits = 10;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int power = std::max(exponent - 1, least_exponent);
  // Units of the last place, the leading one of normal numbers included: rounding up into the next power carries by itself.
  const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, digits - power)));
  const unsigned leading = 1U << digits;
  const unsigned bits = units < leading ? units : (static_cast<unsigned>(power - least_exponent + 1) << digits) + (units - leading);
  return static_cast<std::uint16_t>(sign | bits);
}

/// The same.
inline std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

}  // namespace hipdnn_rt
