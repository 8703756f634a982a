// `reduce`: dims folded to size 1, for the types that hipDNN's reduction lacks.
#include "../engines/rowwise_parallel.h"
#include "elements.h"
#include "functions.h"
#include "layout.h"

namespace hipdnn_port::kernels {
namespace {

class Reduce : public Kernel {
 public:
  explicit Reduce(const Image& image) : Kernel(image) {
    image.attributes.expect_only({"operator"});
    image.expect_counts(1, 1);
    image.expect_same_dtype(0, 1);
    operator_ = image.attributes.choice("operator", {"add", "mul", "min", "max", "and", "or"});
    const bool is_logical = operator_ >= 4;
    if (is_logical != (tensor(0).dtype == DType::boolean)) {
      refuse("tensors[0].dtype: bool has 'and' and 'or', numbers have the others; got ", info_of(tensor(0).dtype).name);
    }
    const Tensor& in = tensor(0);
    const Tensor& out = tensor(1);
    if (in.rank() != out.rank()) refuse("tensors[1].dims: expected ", in.rank(), " dims, got ", show(out.dims));
    Dims folded, folded_strides;
    for (std::size_t d = 0; d < in.rank(); ++d) {
      if (in.dims[d] == out.dims[d]) {
        kept_.push_back(in.dims[d]);
        source_.push_back(in.strides[d]);
        destination_.push_back(out.strides[d]);
      } else if (out.dims[d] == 1) {
        folded.push_back(in.dims[d]);
        folded_strides.push_back(in.strides[d]);
      } else {
        refuse("tensors[1].dims: expected 1 or ", in.dims[d], " at dim ", d, ", got ", out.dims[d]);
      }
    }
    folded_count_ = product(folded);
    folded_ = Walk(std::move(folded), std::move(folded_strides));
    Dims* const both[] = {&source_, &destination_};
    join_dims(kept_, both);
    // Results next to each other are folded together where that reads memory in order.
    const bool is_across = source_.back() < folded_.inner_stride();
    width_ = is_across ? std::min(kept_.back(), max_width) : 1;
  }

 private:
  static constexpr std::int64_t max_width = 128;

  void run(const Operands& operands, int threads) const override {
    for_dtype(tensor(0).dtype, [&]<class T>(T) {
      if constexpr (std::is_same_v<T, Boolean>) {
        operator_ == 4 ? run_all<T, Both>(operands, threads) : run_all<T, Either>(operands, threads);
      } else {
        switch (operator_) {
          case 0: return run_all<T, Plus>(operands, threads);
          case 1: return run_all<T, Times>(operands, threads);
          case 2: return run_all<T, Least>(operands, threads);
          default: return run_all<T, Greatest>(operands, threads);
        }
      }
    });
  }

  template <class T, class Operation>
  void run_all(const Operands& operands, int threads) const {
    const std::int64_t pieces = (kept_.back() + width_ - 1) / width_;
    const std::int64_t rows = product(std::span(kept_).first(kept_.size() - 1));
    const int used = useful_threads(threads, rows * pieces, tensor(0).elements(), 1);
    const auto outer = std::span<const std::int64_t>(kept_).first(kept_.size() - 1);
    parallel_ranges(used, rows * pieces, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t at = i % pieces * width_;
        const T* x = operands.at<T>(0) + offset_of(outer, source_, i / pieces) + at * source_.back();
        T* y = operands.at<T>(1) + offset_of(outer, destination_, i / pieces) + at * destination_.back();
        fold<T, Operation>(x, y, std::min(width_, kept_.back() - at));
      }
    });
  }

  template <class T, class Operation>
  void fold(const T* x, T* y, std::int64_t width) const {
    using Accumulator = AccumulatorOf<T>;
    std::array<Accumulator, max_width> sums;
    std::fill_n(sums.begin(), width, Operation::template identity<Accumulator>());
    const std::int64_t step = folded_.inner_stride();
    const std::int64_t across = source_.back();
    folded_.for_runs(0, folded_count_, [&](std::int64_t offset, std::int64_t run) {
      const T* from = x + offset;
      if (width == 1) {
        Accumulator sum = sums[0];
        for (std::int64_t i = 0; i < run; ++i) sum = Operation::of(sum, static_cast<Accumulator>(Element<T>::load(from[i * step])));
        sums[0] = sum;
        return;
      }
      for (std::int64_t i = 0; i < run; ++i) {
        for (std::int64_t w = 0; w < width; ++w) {
          sums[static_cast<std::size_t>(w)] =
              Operation::of(sums[static_cast<std::size_t>(w)], static_cast<Accumulator>(Element<T>::load(from[i * step + w * across])));
        }
      }
    });
    for (std::int64_t w = 0; w < width; ++w) {
      y[w * destination_.back()] = Element<T>::store(static_cast<ValueOf<T>>(sums[static_cast<std::size_t>(w)]));
    }
  }

  std::size_t operator_ = 0;
  Dims kept_, source_, destination_;
  Walk folded_;
  std::int64_t folded_count_ = 1;
  /// Results folded together.
  std::int64_t width_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> make_reduce(const Image& image) { return std::make_unique<Reduce>(image); }

}  // namespace hipdnn_port::kernels
