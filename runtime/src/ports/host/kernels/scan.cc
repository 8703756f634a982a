// `scan`: running sums and products along a dim.
#include "elements.h"
#include "functions.h"
#include "lines.h"

namespace hipdnn_port::kernels {
namespace {

class Scan : public Kernel {
 public:
  explicit Scan(const Image& image) : Kernel(image) {
    image.attributes.expect_only({"axis", "operator", "exclusive", "reverse"});
    image.expect_counts(1, 1);
    image.expect_same_dtype(0, 1);
    if (tensor(0).dtype == DType::boolean) refuse("tensors[0].dtype: expected a type of numbers, got bool");
    image.expect_dims(1, tensor(0).dims);
    axis_ = image.attributes.axis("axis", tensor(0).rank());
    multiplies_ = image.attributes.choice("operator", {"add", "mul"}) == 1;
    is_exclusive_ = image.attributes.boolean("exclusive");
    is_reversed_ = image.attributes.boolean("reverse");
    lines_ = Lines(tensor(0).dims, axis_);
  }

 private:
  void run(const Operands& operands, int threads) const override {
    for_dtype(tensor(0).dtype, [&]<class T>(T) {
      lines_.for_all(threads, tensor(0).dims[axis_], [&](std::int64_t line) {
        multiplies_ ? fill<T, Times>(operands, line) : fill<T, Plus>(operands, line);
      });
    });
  }

  template <class T, class Operation>
  void fill(const Operands& operands, std::int64_t line) const {
    using Accumulator = AccumulatorOf<T>;
    const std::int64_t count = tensor(0).dims[axis_];
    const T* x = operands.at<T>(0) + lines_.start(tensor(0).strides, line);
    T* y = operands.at<T>(1) + lines_.start(tensor(1).strides, line);
    Accumulator sum = Operation::template identity<Accumulator>();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = is_reversed_ ? count - 1 - i : i;
      const auto next = Operation::of(sum, static_cast<Accumulator>(Element<T>::load(x[at * tensor(0).strides[axis_]])));
      y[at * tensor(1).strides[axis_]] = Element<T>::store(static_cast<ValueOf<T>>(is_exclusive_ ? sum : next));
      sum = next;
    }
  }

  std::size_t axis_ = 0;
  bool multiplies_ = false;
  bool is_exclusive_ = false;
  bool is_reversed_ = false;
  Lines lines_;
};

}  // namespace

std::unique_ptr<Kernel> make_scan(const Image& image) { return std::make_unique<Scan>(image); }

}  // namespace hipdnn_port::kernels
