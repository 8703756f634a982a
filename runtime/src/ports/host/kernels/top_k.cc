// `top_k`: the greatest or least elements along a dim, with their positions.
#include "elements.h"
#include "functions.h"
#include "lines.h"

namespace hipdnn_port::kernels {
namespace {

/// One line's results, which are also the only scratch: a heap with its worst entry first.
template <class T, bool greatest>
struct Heap {
  T* values;
  std::int64_t value_step;
  std::int64_t* positions;
  std::int64_t position_step;

  T& value(std::int64_t i) const { return values[i * value_step]; }
  std::int64_t& position(std::int64_t i) const { return positions[i * position_step]; }

  /// Whether the first comes before the second; of equal values the one at the lower position does, a NaN is greater than any number.
  static bool is_before(T a, std::int64_t at_a, T b, std::int64_t at_b) {
    const auto x = Element<T>::load(a);
    const auto y = Element<T>::load(b);
    if (is_nan(x) || is_nan(y)) return is_nan(x) == is_nan(y) ? at_a < at_b : is_nan(x) == greatest;
    return x == y ? at_a < at_b : greatest ? x > y : x < y;
  }

  void set(std::int64_t i, T a, std::int64_t at) const {
    value(i) = a;
    position(i) = at;
  }

  /// Puts an entry at the root of the subtree `i` of `size` entries, and what is worse above it.
  void sink(std::int64_t i, std::int64_t size, T a, std::int64_t at) const {
    for (std::int64_t child = 2 * i + 1; child < size; child = 2 * i + 1) {
      if (child + 1 < size && is_before(value(child), position(child), value(child + 1), position(child + 1))) ++child;
      if (!is_before(a, at, value(child), position(child))) break;
      set(i, value(child), position(child));
      i = child;
    }
    set(i, a, at);
  }

  void select(const T* x, std::int64_t step, std::int64_t count, std::int64_t k) const {
    for (std::int64_t i = 0; i < k; ++i) set(i, x[i * step], i);
    for (std::int64_t i = k / 2; i-- > 0;) sink(i, k, value(i), position(i));
    for (std::int64_t i = k; i < count; ++i) {
      if (is_before(x[i * step], i, value(0), position(0))) sink(0, k, x[i * step], i);
    }
  }

  void sort(std::int64_t k) const {
    for (std::int64_t last = k - 1; last > 0; --last) {
      const T a = value(last);
      const std::int64_t at = position(last);
      set(last, value(0), position(0));
      sink(0, last, a, at);
    }
  }
};

class TopK : public Kernel {
 public:
  explicit TopK(const Image& image) : Kernel(image) {
    image.attributes.expect_only({"axis", "largest", "sorted"});
    image.expect_counts(1, 2);
    image.expect_same_dtype(0, 1);
    expect_i64(image, 2);
    axis_ = image.attributes.axis("axis", tensor(0).rank());
    finds_greatest_ = image.attributes.boolean("largest");
    is_sorted_ = image.attributes.boolean("sorted");
    k_ = tensor(1).rank() > axis_ ? tensor(1).dims[axis_] : 0;
    if (k_ > tensor(0).dims[axis_]) refuse("tensors[1].dims: ", k_, " of only ", tensor(0).dims[axis_], " elements along dim ", axis_);
    expect_line_dims(image, 1, axis_, k_);
    expect_line_dims(image, 2, axis_, k_);
    lines_ = Lines(tensor(0).dims, axis_);
  }

 private:
  void run(const Operands& operands, int threads) const override {
    for_dtype(tensor(0).dtype, [&]<class T>(T) {
      lines_.for_all(threads, 4 * tensor(0).dims[axis_], [&](std::int64_t line) {
        finds_greatest_ ? fill<T, true>(operands, line) : fill<T, false>(operands, line);
      });
    });
  }

  template <class T, bool greatest>
  void fill(const Operands& operands, std::int64_t line) const {
    const Heap<T, greatest> heap{operands.at<T>(1) + lines_.start(tensor(1).strides, line), tensor(1).strides[axis_],
                                 operands.at<std::int64_t>(2) + lines_.start(tensor(2).strides, line), tensor(2).strides[axis_]};
    heap.select(operands.at<T>(0) + lines_.start(tensor(0).strides, line), tensor(0).strides[axis_], tensor(0).dims[axis_], k_);
    if (is_sorted_) heap.sort(k_);
  }

  std::size_t axis_ = 0;
  bool finds_greatest_ = true;
  bool is_sorted_ = true;
  std::int64_t k_ = 0;
  Lines lines_;
};

}  // namespace

std::unique_ptr<Kernel> make_top_k(const Image& image) { return std::make_unique<TopK>(image); }

}  // namespace hipdnn_port::kernels
