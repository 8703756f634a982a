#include "narrow_floats.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hipdnn_port {
namespace {

constexpr std::uint8_t sign_bit = 0x80;

/// Value of a code without its sign, of `fraction_bits` and an exponent biased by `bias`.
float decoded(int code, int fraction_bits, int bias) {
  const int exponent = code >> fraction_bits;
  const int fraction = code & ((1 << fraction_bits) - 1);
  const int least = 1 - bias - fraction_bits;
  if (exponent == 0) return std::ldexp(static_cast<float>(fraction), least);
  return std::ldexp(static_cast<float>(fraction + (1 << fraction_bits)), exponent - 1 + least);
}

}  // namespace

NarrowFloats::NarrowFloats(hipdnnDataType_t type) : type_(type) {
  const bool is_e5m2 = type == HIPDNN_DATA_FP8_E5M2;
  for (int code = 0; code < 256; ++code) {
    const int magnitude = code & 0x7F;
    values_[static_cast<std::size_t>(code)] = type == HIPDNN_DATA_FP8_E8M0 ? std::ldexp(1.0F, code - 127)
                                              : type == HIPDNN_DATA_INT8   ? static_cast<float>(magnitude)
                                              : is_e5m2                    ? decoded(magnitude, 2, 15)
                                                                           : decoded(magnitude, 3, 7);
  }
  switch (type) {
    case HIPDNN_DATA_FP8_E8M0: last_ = 254, nan_ = 255; break;
    case HIPDNN_DATA_FP8_E5M2: last_ = 0x7B, nan_ = 0x7F; break;  // between them infinity and NaNs
    case HIPDNN_DATA_INT8: last_ = 127, nan_ = 0; break;
    default: last_ = 0x7E, nan_ = 0x7F; break;
  }
}

float NarrowFloats::value(std::uint8_t code) const {
  if (type_ == HIPDNN_DATA_INT8) return static_cast<float>(static_cast<std::int8_t>(code));
  if (type_ == HIPDNN_DATA_FP8_E8M0) return code == nan_ ? std::numeric_limits<float>::quiet_NaN() : values_[code];
  const auto magnitude = static_cast<std::uint8_t>(code & ~sign_bit);
  float result = values_[magnitude];
  if (magnitude > last_) {
    const bool is_infinite = type_ == HIPDNN_DATA_FP8_E5M2 && magnitude == 0x7C;
    result = is_infinite ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  }
  return (code & sign_bit) != 0 ? -result : result;
}

std::uint8_t NarrowFloats::not_below(float x) const {
  const auto found = std::lower_bound(values_.begin(), values_.begin() + last_, x);
  return static_cast<std::uint8_t>(found - values_.begin());
}

std::uint8_t NarrowFloats::nearest(float x) const {
  if (std::isnan(x)) return nan_;
  const float magnitude = std::fabs(x);
  std::uint8_t code = not_below(magnitude);
  if (code > 0) {
    const float above = values_[code] - magnitude;
    const float below = magnitude - values_[code - 1U];
    if (below < above || (below == above && code % 2 != 0)) --code;
  }
  if (!std::signbit(x)) return code;
  return type_ == HIPDNN_DATA_INT8 ? static_cast<std::uint8_t>(-code) : static_cast<std::uint8_t>(code | sign_bit);
}

}  // namespace hipdnn_port
