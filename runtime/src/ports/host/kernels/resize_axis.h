// One dim of a `resize`: which elements each result takes, and with what weights.
#pragma once

#include <cstdint>
#include <vector>

#include "image.h"

namespace hipdnn_port::kernels {

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
