#include "resize_axis.h"

#include <algorithm>
#include <cmath>

namespace hipdnn_port::kernels {
namespace {

/// Entries of a table: 128 MiB each for positions and weights.
constexpr std::int64_t max_taps = std::int64_t{1} << 24;
/// Farther outside all results are the border's.
constexpr double max_coordinate = 1e15;

/// Where result `at` lies in the input, in elements.
double coordinate(const ResizeRule& rule, std::int64_t at, std::int64_t in_size, std::int64_t out_size, double scale, double start, double end) {
  const auto x = static_cast<double>(at);
  const auto in = static_cast<double>(in_size);
  // Not always the result's size, which is a whole number.
  const double stretched = scale * in;
  const double centered = (x + 0.5) / scale - 0.5;
  switch (rule.coordinates) {
    case Coordinates::half_pixel: return centered;
    case Coordinates::half_pixel_symmetric: return in / 2 * (1 - static_cast<double>(out_size) / stretched) + centered;
    case Coordinates::pytorch_half_pixel: return stretched == 1 ? -0.5 : centered;
    case Coordinates::align_corners: return stretched == 1 ? 0 : x * (in - 1) / (stretched - 1);
    case Coordinates::asymmetric: return x / scale;
    case Coordinates::tf_crop_and_resize:
      return start * (in - 1) + (stretched == 1 ? (end - start) * (in - 1) / 2 : x * (end - start) * (in - 1) / (stretched - 1));
  }
  return 0;
}

double nearest_position(NearestMode mode, double x) {
  switch (mode) {
    case NearestMode::round_prefer_floor: return std::ceil(x - 0.5);
    case NearestMode::round_prefer_ceil: return std::floor(x + 0.5);
    case NearestMode::floor: return std::floor(x);
    case NearestMode::ceil: return std::ceil(x);
  }
  return x;
}

/// The filter at a distance in elements of the input, for reduction by `shrink` <= 1: wider by its inverse.
double filter(const ResizeRule& rule, double distance) {
  const double x = std::fabs(distance);
  if (rule.mode == ResizeMode::linear) return std::max(0.0, 1 - x);
  if (x >= 2) return 0;
  return x <= 1 ? cubic_weights(x, rule.cubic)[1] : cubic_weights(x - 1, rule.cubic)[0];
}

class Builder {
 public:
  Builder(const ResizeRule& rule, std::int64_t in_size, double scale) : rule_(rule), in_size_(in_size) {
    if (rule.mode == ResizeMode::nearest) return;
    const double support = rule.mode == ResizeMode::linear ? 1 : 2;
    shrink_ = rule.is_antialiased ? std::min(scale, 1.0) : 1.0;
    const double reach = std::floor(support / shrink_);
    if (reach > static_cast<double>(max_taps)) refuse("attributes.scales: ", scale, " takes too many elements for each result");
    // Taps lie from 1 - reach to reach around the element before the point.
    const bool is_whole = std::floor(-support / shrink_) == -support / shrink_;
    reach_ = static_cast<std::int64_t>(reach) + (is_whole ? 0 : 1);
    axis_.count = 2 * reach_;
  }

  ResizeAxis build(std::int64_t out_size, const auto& coordinate_of) {
    if (axis_.count > max_taps / std::max<std::int64_t>(out_size, 1)) {
      refuse("tensors[1].dims: ", out_size, " results of ", axis_.count, " elements each along one dim are more than this library takes");
    }
    const auto size = static_cast<std::size_t>(out_size * axis_.count);
    axis_.positions.reserve(size);
    axis_.weights.reserve(size);
    for (std::int64_t at = 0; at < out_size; ++at) {
      double x = coordinate_of(at);
      if (rule_.coordinates == Coordinates::tf_crop_and_resize && !(x >= 0 && x <= static_cast<double>(in_size_ - 1))) {
        axis_.is_outside.resize(static_cast<std::size_t>(out_size), false);
        axis_.is_outside[static_cast<std::size_t>(at)] = true;
      }
      x = x > -max_coordinate ? std::min(x, max_coordinate) : -max_coordinate;
      rule_.mode == ResizeMode::nearest ? add(nearest_position(rule_.nearest, x)) : add_taps(x);
    }
    simplify();
    return std::move(axis_);
  }

 private:
  void add(double position) {
    axis_.positions.push_back(static_cast<std::int64_t>(std::clamp(position, 0.0, static_cast<double>(in_size_ - 1))));
    axis_.weights.push_back(1);
  }

  void add_taps(double x) {
    const double before = std::ceil(x) - 1;
    const std::size_t first = axis_.weights.size();
    double sum = 0;
    double inside = 0;
    for (std::int64_t k = 1 - reach_; k <= reach_; ++k) {
      const double position = before + static_cast<double>(k);
      const double weight = filter(rule_, (position - x) * shrink_);
      const bool is_inside = position >= 0 && position < static_cast<double>(in_size_);
      add(position);
      axis_.weights.back() = rule_.excludes_outside && !is_inside ? 0 : weight;
      sum += weight;
      inside += axis_.weights.back();
    }
    const double total = rule_.excludes_outside && inside != 0 ? inside : sum;
    for (std::size_t i = first; i < axis_.weights.size(); ++i) axis_.weights[i] /= total;
  }

  /// One tap where a single one counts for every result.
  void simplify() {
    const auto count = static_cast<std::size_t>(axis_.count);
    std::vector<std::int64_t> selected;
    for (std::size_t i = 0; i < axis_.weights.size(); i += count) {
      const auto begin = axis_.weights.begin() + static_cast<std::ptrdiff_t>(i);
      const auto only = std::find(begin, begin + axis_.count, 1.0);
      if (only == begin + axis_.count || std::count(begin, begin + axis_.count, 0.0) != axis_.count - 1) {
        axis_.is_selection = false;
        return;
      }
      selected.push_back(axis_.positions[static_cast<std::size_t>(only - axis_.weights.begin())]);
    }
    axis_.weights.assign(selected.size(), 1.0);
    axis_.positions = std::move(selected);
    axis_.count = 1;
  }

  const ResizeRule& rule_;
  std::int64_t in_size_;
  double shrink_ = 1;
  std::int64_t reach_ = 0;
  ResizeAxis axis_;
};

}  // namespace

ResizeAxis make_resize_axis(const ResizeRule& rule, std::int64_t in_size, std::int64_t out_size, double scale, double start, double end) {
  return Builder(rule, in_size, scale).build(out_size, [&](std::int64_t at) {
    return coordinate(rule, at, in_size, out_size, scale, start, end);
  });
}

}  // namespace hipdnn_port::kernels
