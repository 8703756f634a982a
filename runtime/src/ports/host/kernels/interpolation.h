// Weights of neighbouring elements.
#pragma once

#include <array>

namespace hipdnn_port::kernels {

/// Of the elements around a point `ratio` beyond the second of four: cubic convolution with coefficient `a` (Keys, 1981).
inline std::array<double, 4> cubic_weights(double ratio, double a) {
  const auto near = [a](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [a](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {far(1 + ratio), near(ratio), near(1 - ratio), far(2 - ratio)};
}

}  // namespace hipdnn_port::kernels
