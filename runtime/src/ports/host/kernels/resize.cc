// `resize`: elements between a tensor's elements.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "../engines/rowwise_parallel.h"
#include "elements.h"
#include "functions.h"
#include "layout.h"
#include "resize_axis.h"
#include "resize_lines.h"

namespace hipdnn_port::kernels {
namespace {

/// Combinations of taps of all dims but the innermost.
constexpr std::int64_t max_outer_taps = 1024;

/// Lines of one row that are looked for one by one.
constexpr std::size_t max_lines = 64;

struct Tap {
  std::int64_t offset;
  double weight;
};

class Resize : public Kernel {
 public:
  explicit Resize(const Image& image) : Kernel(image) {
    const Attributes& given = image.attributes;
    given.expect_only({"mode", "coordinates", "nearest", "cubic", "exclude_outside", "extrapolation", "scales", "roi", "antialias"});
    image.expect_counts(1, 1);
    image.expect_same_dtype(0, 1);
    const Tensor& in = tensor(0);
    const Tensor& out = tensor(1);
    if (in.rank() != out.rank()) refuse("tensors[1].dims: expected ", in.rank(), " dims, got ", show(out.dims));
    ResizeRule rule;
    rule.mode = static_cast<ResizeMode>(given.choice("mode", {"nearest", "linear", "cubic"}));
    rule.coordinates = static_cast<Coordinates>(given.choice("coordinates", {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                                                             "align_corners", "asymmetric", "tf_crop_and_resize"}));
    rule.nearest = static_cast<NearestMode>(given.choice("nearest", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
    rule.cubic = given.real("cubic");
    rule.excludes_outside = given.boolean("exclude_outside");
    rule.is_antialiased = given.boolean("antialias");
    extrapolation_ = given.real("extrapolation");
    const std::vector<double> scales = given.reals("scales", in.rank());
    std::vector<double> region(in.rank(), 0.0);
    region.resize(2 * in.rank(), 1.0);
    if (given.has("roi")) region = given.reals("roi", 2 * in.rank());
    if (out.elements() == 0) return;
    if (in.elements() == 0) refuse("tensors[0].dims: no elements to make others of");

    Dims order(in.rank());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    const auto stride = [&](std::int64_t d) { return out.strides[static_cast<std::size_t>(d)]; };
    std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) { return stride(a) > stride(b); });
    for (const std::int64_t dim : order) {
      const auto d = static_cast<std::size_t>(dim);
      const double scale = scales[d] == 0 ? static_cast<double>(out.dims[d]) / static_cast<double>(in.dims[d]) : scales[d];
      if (!(scale > 0) || !std::isfinite(scale)) refuse("attributes.scales[", d, "]: expected a positive number, got ", scale);
      add_axis(make_resize_axis(rule, in.dims[d], out.dims[d], scale, region[d], region[in.rank() + d]), out.dims[d], in.strides[d],
               out.strides[d]);
    }
    if (in.rank() == 0) add_axis(ResizeAxis{1, {0}, {1.0}, {}, true}, 1, 0, 0);
    if (!is_selection_ && in.dtype == DType::boolean) refuse("tensors[0].dtype: bool is only resized to its nearest elements");
    std::int64_t combinations = 1;
    for (std::size_t d = 0; d + 1 < axes_.size(); ++d) {
      if (__builtin_mul_overflow(combinations, axes_[d].count, &combinations) || combinations > max_outer_taps) {
        refuse("tensors[1].dims: each result takes more elements than this library combines");
      }
    }
    outer_taps_ = static_cast<std::size_t>(combinations);
    const bool has_outside = std::ranges::any_of(axes_, [](const ResizeAxis& axis) { return !axis.is_outside.empty(); });
    mixes_lines_ = !is_selection_ && !has_outside && strides_.back() == 1 && outer_taps_ <= max_lines && (in.dtype == DType::f32 || in.dtype == DType::f16 || in.dtype == DType::bf16);
    if (mixes_lines_) line_axis_ = LineAxis(axes_.back(), dims_.back());
  }

 private:
  void add_axis(ResizeAxis axis, std::int64_t size, std::int64_t in_stride, std::int64_t out_stride) {
    for (std::int64_t& position : axis.positions) position *= in_stride;
    is_selection_ = is_selection_ && axis.is_selection && axis.is_outside.empty();
    axes_.push_back(std::move(axis));
    dims_.push_back(size);
    strides_.push_back(out_stride);
  }

  void run(const Operands& operands, int threads) const override {
    const std::int64_t rows = product(std::span(dims_).first(dims_.size() - 1));
    const int used = useful_threads(threads, rows, tensor(1).elements(), 8);
    const auto each_row = [&](const auto& body) {
      parallel_ranges(used, rows, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t row = first; row < last; ++row) body(row);
      });
    };
    if (is_selection_) {
      for_element_size(tensor(0).bytes(), [&]<class T>(T) { each_row([&](std::int64_t row) { select_row<T>(operands, row); }); });
    } else if (mixes_lines_) {
      for_dtype(tensor(0).dtype, [&]<class T>(T) {
        if constexpr (std::is_same_v<ValueOf<T>, float>) {
          parallel_ranges(used, rows, [&](std::int64_t first, std::int64_t last, int) { mix_lines<T>(operands, first, last); });
        }
      });
    } else {
      for_dtype(tensor(0).dtype, [&]<class T>(T) { each_row([&](std::int64_t row) { mix_row<T>(operands, row); }); });
    }
  }

  std::int64_t out_offset(std::int64_t row) const { return offset_of(std::span(dims_).first(dims_.size() - 1), strides_, row); }

  template <class T>
  void select_row(const Operands& operands, std::int64_t row) const {
    T* to = operands.at<T>(1) + out_offset(row);
    std::int64_t from = 0;
    for (std::size_t d = dims_.size() - 1; d-- > 0;) {
      from += axes_[d].positions[static_cast<std::size_t>(row % dims_[d])];
      row /= dims_[d];
    }
    const T* source = operands.at<T>(0) + from;
    const std::vector<std::int64_t>& positions = axes_.back().positions;
    for (std::size_t i = 0; i < positions.size(); ++i) to[static_cast<std::int64_t>(i) * strides_.back()] = source[positions[i]];
  }

  template <class T>
  void mix_row(const Operands& operands, std::int64_t row) const {
    T* to = operands.at<T>(1) + out_offset(row);
    std::array<Tap, max_outer_taps> taps;
    const std::size_t count = outer_taps(taps, row);
    bool is_outside = false;
    for (std::size_t d = dims_.size() - 1; d-- > 0;) {
      is_outside |= is_outside_at(axes_[d], row % dims_[d]);
      row /= dims_[d];
    }
    const ResizeAxis& inner = axes_.back();
    const T* source = operands.at<T>(0);
    for (std::int64_t i = 0; i < dims_.back(); ++i) {
      double sum = 0;
      for (std::int64_t k = i * inner.count; k < (i + 1) * inner.count; ++k) {
        const double weight = inner.weights[static_cast<std::size_t>(k)];
        const T* column = source + inner.positions[static_cast<std::size_t>(k)];
        double part = 0;
        for (std::size_t t = 0; t < count; ++t) part += taps[t].weight * static_cast<double>(Element<T>::load(column[taps[t].offset]));
        sum += weight * part;
      }
      to[i * strides_.back()] = from_real<T>(is_outside || is_outside_at(inner, i) ? extrapolation_ : sum);
    }
  }

  template <class T>
  void mix_lines(const Operands& operands, std::int64_t first, std::int64_t last) const {
    ResizedLines<T> lines(line_axis_, operands.at<T>(0), outer_taps_);
    std::vector<float> sums(static_cast<std::size_t>(line_axis_.size()));
    std::array<Tap, max_outer_taps> taps;
    for (std::int64_t row = first; row < last; ++row) {
      const std::size_t count = outer_taps(taps, row);
      T* to = operands.at<T>(1) + out_offset(row);
      if constexpr (std::is_same_v<T, float>) {
        mix(lines, std::span(taps).first(count), to);
      } else {
        mix(lines, std::span(taps).first(count), sums.data());
        std::ranges::transform(sums, to, Element<T>::store);
      }
    }
  }

  /// Writes the sum of lines, each times its weight.
  template <class T>
  void mix(ResizedLines<T>& lines, std::span<const Tap> taps, float* to) const {
    const std::int64_t size = line_axis_.size();
    const float* one = lines.at(taps[0].offset);
    const auto weight = static_cast<float>(taps[0].weight);
    if (taps.size() == 1) {
      for (std::int64_t i = 0; i < size; ++i) to[i] = weight * one[i];
      return;
    }
    const float* other = lines.at(taps[1].offset);
    const auto other_weight = static_cast<float>(taps[1].weight);
    for (std::int64_t i = 0; i < size; ++i) to[i] = weight * one[i] + other_weight * other[i];
    for (const Tap& tap : taps.subspan(2)) {
      const float* next = lines.at(tap.offset);
      const auto next_weight = static_cast<float>(tap.weight);
      for (std::int64_t i = 0; i < size; ++i) to[i] += next_weight * next[i];
    }
  }

  /// The taps of all dims but the innermost for a row; answers how many there are.
  std::size_t outer_taps(std::array<Tap, max_outer_taps>& taps, std::int64_t row) const {
    std::size_t count = 1;
    taps[0] = {0, 1.0};
    for (std::size_t d = dims_.size() - 1; d-- > 0;) {
      count = spread(taps, count, axes_[d], row % dims_[d]);
      row /= dims_[d];
    }
    return count;
  }

  static bool is_outside_at(const ResizeAxis& axis, std::int64_t at) {
    return !axis.is_outside.empty() && axis.is_outside[static_cast<std::size_t>(at)];
  }

  /// Every tap with every tap of one more dim; answers how many there are.
  static std::size_t spread(std::array<Tap, max_outer_taps>& taps, std::size_t count, const ResizeAxis& axis, std::int64_t at) {
    const auto first = static_cast<std::size_t>(at * axis.count);
    const auto extra = static_cast<std::size_t>(axis.count);
    // Backwards, so that a tap is read before its place is written.
    for (std::size_t t = count; t-- > 0;) {
      const Tap tap = taps[t];
      for (std::size_t k = 0; k < extra; ++k) {
        taps[t * extra + k] = {tap.offset + axis.positions[first + k], tap.weight * axis.weights[first + k]};
      }
    }
    return count * extra;
  }

  /// Outermost first, as the result lies in memory; positions are offsets in elements.
  std::vector<ResizeAxis> axes_;
  Dims dims_, strides_;
  bool is_selection_ = true;
  double extrapolation_ = 0;
  /// Of floats in lines whose elements lie next to each other.
  bool mixes_lines_ = false;
  std::size_t outer_taps_ = 1;
  LineAxis line_axis_;
};

}  // namespace

std::unique_ptr<Kernel> make_resize(const Image& image) { return std::make_unique<Resize>(image); }

}  // namespace hipdnn_port::kernels
