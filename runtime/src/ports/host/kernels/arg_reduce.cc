// `arg_reduce`: where along a dim the greatest or least element is.
#include "elements.h"
#include "functions.h"
#include "lines.h"

namespace hipdnn_port::kernels {
namespace {

class ArgReduce : public Kernel {
 public:
  explicit ArgReduce(const Image& image) : Kernel(image) {
    image.attributes.expect_only({"axis", "mode", "select_last"});
    image.expect_counts(1, 1);
    expect_i64(image, 1);
    axis_ = image.attributes.axis("axis", tensor(0).rank());
    finds_greatest_ = image.attributes.choice("mode", {"max", "min"}) == 0;
    selects_last_ = image.attributes.boolean("select_last");
    expect_line_dims(image, 1, axis_, 1);
    if (tensor(0).dims[axis_] == 0 && tensor(1).elements() != 0) refuse("tensors[0].dims: nothing to choose from along dim ", axis_);
    lines_ = Lines(tensor(0).dims, axis_);
  }

 private:
  void run(const Operands& operands, int threads) const override {
    for_dtype(tensor(0).dtype, [&]<class T>(T) {
      lines_.for_all(threads, tensor(0).dims[axis_], [&](std::int64_t line) {
        const T* x = operands.at<T>(0) + lines_.start(tensor(0).strides, line);
        operands.at<std::int64_t>(1)[lines_.start(tensor(1).strides, line)] = finds_greatest_ ? find<true>(x) : find<false>(x);
      });
    });
  }

  /// A NaN is more extreme than any number.
  template <bool greatest, class T>
  std::int64_t find(const T* x) const {
    const std::int64_t step = tensor(0).strides[axis_];
    auto best = Element<T>::load(x[0]);
    std::int64_t position = 0;
    for (std::int64_t i = 1; i < tensor(0).dims[axis_]; ++i) {
      const auto value = Element<T>::load(x[i * step]);
      const bool is_better = (greatest ? value > best : value < best) || (is_nan(value) && !is_nan(best));
      const bool is_equal = value == best || (is_nan(value) && is_nan(best));
      if (!is_better && !(selects_last_ && is_equal)) continue;
      best = value;
      position = i;
    }
    return position;
  }

  std::size_t axis_ = 0;
  bool finds_greatest_ = true;
  bool selects_last_ = false;
  Lines lines_;
};

}  // namespace

std::unique_ptr<Kernel> make_arg_reduce(const Image& image) { return std::make_unique<ArgReduce>(image); }

}  // namespace hipdnn_port::kernels
