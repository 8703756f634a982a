// Numbers of 8 bits: their values, and the nearest one to a float. Numbers of 4 bits: their values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hipdnn_backend.h"

namespace hipdnn_port {

/// The int4 at an offset in elements: two to a byte, two's complement, the first in the lower half.
inline std::int8_t int4_at(const std::byte* memory, std::int64_t offset) {
  const auto both = std::to_integer<unsigned>(memory[offset / 2]);
  const unsigned code = offset % 2 == 0 ? both & 0xFU : both >> 4U;
  return static_cast<std::int8_t>(static_cast<int>(code ^ 8U) - 8);
}

/// The values of a type's codes 0 to 127 (the positive ones; negative codes follow with the sign bit) or, for e8m0, of all 256.
class NarrowFloats {
 public:
  /// FP8_E4M3, FP8_E5M2, FP8_E8M0 or INT8.
  explicit NarrowFloats(hipdnnDataType_t type);

  float value(std::uint8_t code) const;
  /// Greatest finite value.
  float greatest() const { return values_[last_]; }
  /// Nearest value, ties to the even code, saturating; NaN becomes NaN, and 0 where the type has none.
  std::uint8_t nearest(float x) const;
  /// Least value that is not below x, which is not negative; the greatest one where there is none.
  std::uint8_t not_below(float x) const;

 private:
  hipdnnDataType_t type_;
  std::array<float, 256> values_{};  ///< ascending up to last_
  std::uint8_t last_ = 0;            ///< code of the greatest finite value
  std::uint8_t nan_ = 0;
};

}  // namespace hipdnn_port
