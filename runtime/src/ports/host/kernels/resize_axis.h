// Weights of interpolation, and one dim of a `resize`: which elements each result takes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "image.h"

namespace hipdnn_port::kernels {

/// Of the elements around a point `ratio` beyond the second of four: cubic convolution with coefficient `a` (Keys, 1981).
inline std::array<double, 4> cubic_weights(double ratio, double a) {
  const auto near = [a](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [a](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  return {far(1 + ratio), near(ratio), near(1 - ratio), far(2 - ratio)};
}

enum class ResizeMode : std::uint8_t { nearest, linear, cubic };
enum class Coordinates : std::uint8_t { half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric, tf_crop_and_resize };
enum class NearestMode : std::uint8_t { round_prefer_floor, round_prefer_ceil, floor, ceil };

/// What all dims share.
struct ResizeRule {
  ResizeMode mode = ResizeMode::nearest;
  Coordinates coordinates = Coordinates::half_pixel;
  NearestMode nearest = NearestMode::round_prefer_floor;
  double cubic = -0.75;
  bool excludes_outside = false;
  bool is_antialiased = false;
};

/// Taps of the results along one dim: `count` for each, one after the other.
struct ResizeAxis {
  std::int64_t count = 1;
  /// Elements taken, from 0 to the input's size - 1.
  std::vector<std::int64_t> positions;
  std::vector<double> weights;
  /// Results that lie outside and have the extrapolation value; empty where there are none.
  std::vector<bool> is_outside;
  /// One tap of weight 1 everywhere.
  bool is_selection = true;
};

/// Sizes of input and result, both positive; `scale` is finite and positive; `start` and `end` are the region of interest.
/// Throws KernelError where that takes too many taps.
ResizeAxis make_resize_axis(const ResizeRule& rule, std::int64_t in_size, std::int64_t out_size, double scale, double start, double end);

}  // namespace hipdnn_port::kernels
