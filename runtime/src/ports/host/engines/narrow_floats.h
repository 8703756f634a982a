// Numbers of 8 bits: their values, and the nearest one to a float.
#pragma once

#include <array>
#include <cstdint>

#include "hipdnn_backend.h"

namespace hipdnn_port {

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
