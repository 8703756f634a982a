// `grid_sample`: elements of an image, or volume, at the points of a grid.
#include <algorithm>
#include <cmath>

#include "../engines/rowwise_parallel.h"
#include "elements.h"
#include "functions.h"
#include "layout.h"
#include "moves.h"
#include "resize_axis.h"

namespace hipdnn_port::kernels {
namespace {

enum class SampleMode : std::uint8_t { nearest, linear, cubic };
enum class Padding : std::uint8_t { zeros, border, reflection };

constexpr std::size_t max_spatial = 3;
constexpr std::size_t max_taps = 64;
constexpr double cubic_coefficient = -0.75;
/// Points farther away, and NaN, count as this far.
constexpr double far_away = 1e9;

struct Tap {
  std::int64_t offset;
  double weight;
};

class GridSample : public Kernel {
 public:
  explicit GridSample(const Image& image) : Kernel(image) {
    image.attributes.expect_only({"mode", "padding", "align_corners"});
    image.expect_counts(2, 1);
    image.expect_same_dtype(0, 2);
    const Tensor& x = tensor(0);
    const Tensor& grid = tensor(1);
    mode_ = static_cast<SampleMode>(image.attributes.choice("mode", {"nearest", "linear", "cubic"}));
    padding_ = static_cast<Padding>(image.attributes.choice("padding", {"zeros", "border", "reflection"}));
    aligns_corners_ = image.attributes.boolean("align_corners");
    if (!is_float(grid.dtype)) refuse("tensors[1].dtype: expected a float type, got ", info_of(grid.dtype).name);
    if (x.rank() < 3 || x.rank() > 2 + max_spatial) refuse("tensors[0].dims: expected 3 to 5 dims, got ", show(x.dims));
    spatial_ = x.rank() - 2;
    if (grid.rank() != x.rank() || grid.dims[0] != x.dims[0] || grid.dims.back() != static_cast<std::int64_t>(spatial_)) {
      refuse("tensors[1].dims: expected [", x.dims[0], ", ..., ", spatial_, "] of ", x.rank(), " dims, got ", show(grid.dims));
    }
    const Dims points = part(grid.dims, 1, grid.rank() - 1);
    image.expect_dims(2, joined({x.dims[0], x.dims[1]}, points));
    const Dims batched = joined({x.dims[0]}, points);
    points_ = product(batched);
    grid_walk_ = batched;
    if (x.elements() == 0 && tensor(2).elements() != 0 && padding_ != Padding::zeros) refuse("tensors[0].dims: no elements to sample");
  }

 private:
  void run(const Operands& operands, int threads) const override {
    const int used = useful_threads(threads, points_, tensor(2).elements(), 16);
    for_dtype(tensor(0).dtype, [&]<class T>(T) {
      parallel_ranges(used, points_, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t point = first; point < last; ++point) sample<T>(operands, point);
      });
    });
  }

  template <class T>
  void sample(const Operands& operands, std::int64_t point) const {
    const Tensor& x = tensor(0);
    const Tensor& out = tensor(2);
    const std::int64_t from = offset_of(grid_walk_, tensor(1).strides, point);
    const std::int64_t batch = point / (points_ / x.dims[0]);
    std::array<Tap, max_taps> taps;
    taps[0] = {batch * x.strides[0], 1.0};
    std::size_t count = 1;
    for (std::size_t s = 0; s < spatial_; ++s) {
      // A point of the grid has its last dim first.
      const std::int64_t component = from + static_cast<std::int64_t>(spatial_ - 1 - s) * tensor(1).strides.back();
      count = spread(taps, count, read_real(operands.at(1), tensor(1).dtype, component), s + 2);
    }
    Dims::value_type to = batch * out.strides[0];
    std::int64_t rest = point;
    for (std::size_t d = out.rank(); d-- > 2;) {
      to += rest % out.dims[d] * out.strides[d];
      rest /= out.dims[d];
    }
    for (std::int64_t c = 0; c < x.dims[1]; ++c) {
      double sum = 0;
      for (std::size_t t = 0; t < count; ++t) {
        if (taps[t].offset < 0) continue;
        sum += taps[t].weight * static_cast<double>(Element<T>::load(operands.at<T>(0)[taps[t].offset + c * x.strides[1]]));
      }
      operands.at<T>(2)[to + c * out.strides[1]] = from_real<T>(sum);
    }
  }

  /// Every tap with those of one more dim, for coordinate `normalized` from -1 to 1; an offset of -1 is a tap outside.
  std::size_t spread(std::array<Tap, max_taps>& taps, std::size_t count, double normalized, std::size_t d) const {
    const std::int64_t size = tensor(0).dims[d];
    double x = aligns_corners_ ? (normalized + 1) / 2 * static_cast<double>(size - 1) : ((normalized + 1) * static_cast<double>(size) - 1) / 2;
    x = x > -far_away ? std::min(x, far_away) : -far_away;
    if (mode_ == SampleMode::nearest) x = std::nearbyint(x);
    // A cubic between the border and a point outside differs from the border itself.
    if (padding_ == Padding::border && mode_ != SampleMode::cubic) x = std::clamp(x, 0.0, static_cast<double>(size - 1));
    if (padding_ == Padding::reflection) x = reflected(x, size);
    std::array<double, 4> weights{1.0};
    std::size_t extra = 1;
    std::int64_t first = static_cast<std::int64_t>(std::floor(x));
    const double ratio = x - std::floor(x);
    if (mode_ == SampleMode::linear) {
      weights = {1 - ratio, ratio};
      extra = 2;
    } else if (mode_ == SampleMode::cubic) {
      weights = cubic_weights(ratio, cubic_coefficient);
      extra = 4;
      --first;
    }
    for (std::size_t t = count; t-- > 0;) {
      const Tap tap = taps[t];
      for (std::size_t k = 0; k < extra; ++k) {
        const std::int64_t position = position_of(first + static_cast<std::int64_t>(k), size);
        taps[t * extra + k] = {tap.offset < 0 || position < 0 ? -1 : tap.offset + position * tensor(0).strides[d], tap.weight * weights[k]};
      }
    }
    return count * extra;
  }

  /// The element that shows at a position, -1 where none does.
  std::int64_t position_of(std::int64_t at, std::int64_t size) const {
    if (at >= 0 && at < size) return at;
    if (padding_ == Padding::zeros || size == 0) return -1;
    const double shown = padding_ == Padding::border ? static_cast<double>(at) : reflected(static_cast<double>(at), size);
    return static_cast<std::int64_t>(std::clamp(shown, 0.0, static_cast<double>(size - 1)));
  }

  /// Mirrored at the borders until it lies within: at the outer elements' centers where corners are aligned, else at their edges.
  double reflected(double x, std::int64_t size) const {
    const double low = aligns_corners_ ? 0 : -0.5;
    const double range = static_cast<double>(aligns_corners_ ? size - 1 : size);
    if (range <= 0) return 0;
    const double distance = std::fmod(std::fabs(x - low), 2 * range);
    return low + (distance <= range ? distance : 2 * range - distance);
  }

  SampleMode mode_ = SampleMode::linear;
  Padding padding_ = Padding::zeros;
  bool aligns_corners_ = false;
  std::size_t spatial_ = 0;
  std::int64_t points_ = 0;
  /// Dims of the grid without its last.
  Dims grid_walk_;
};

}  // namespace

std::unique_ptr<Kernel> make_grid_sample(const Image& image) { return std::make_unique<GridSample>(image); }

}  // namespace hipdnn_port::kernels
