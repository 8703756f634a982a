// `slice` and `reverse_sequence`: elements read forwards or backwards.
#include "../engines/rowwise_parallel.h"
#include "functions.h"
#include "moves.h"

namespace hipdnn_port::kernels {
namespace {

class Slice : public Kernel {
 public:
  explicit Slice(const Image& image) : Kernel(image) {
    image.attributes.expect_only({"starts", "steps"});
    image.expect_counts(1, 1);
    image.expect_same_dtype(0, 1);
    const Tensor& in = tensor(0);
    const Tensor& out = tensor(1);
    if (in.rank() != out.rank()) refuse("tensors[1].dims: expected ", in.rank(), " dims, got ", show(out.dims));
    const Dims starts = image.attributes.integers("starts", in.rank());
    const Dims steps = image.attributes.integers("steps", in.rank());
    Dims strides(in.rank(), 0);
    const bool is_empty = out.elements() == 0;
    for (std::size_t d = 0; d < in.rank(); ++d) {
      if (steps[d] == 0) refuse("attributes.steps[", d, "]: a step of 0 never ends");
      if (is_empty) continue;
      std::int64_t last = 0;
      const bool overflows = __builtin_mul_overflow(out.dims[d] - 1, steps[d], &last) || __builtin_add_overflow(last, starts[d], &last);
      if (overflows || std::min(starts[d], last) < 0 || std::max(starts[d], last) >= in.dims[d]) {
        refuse("attributes: dim ", d, " of ", in.dims[d], " is left by ", out.dims[d], " elements from ", starts[d], " in steps of ", steps[d]);
      }
      first_ += starts[d] * in.strides[d];
      // Where there is one element the step is never taken, and its product with the stride need not fit.
      strides[d] = out.dims[d] == 1 ? 0 : steps[d] * in.strides[d];
    }
    copy_ = BlockCopy(out.dims, std::move(strides), out.strides, in.bytes());
  }

 private:
  void run(const Operands& operands, int threads) const override {
    copy_.run(operands.at(0) + first_ * tensor(0).bytes(), operands.at(1), threads);
  }

  std::int64_t first_ = 0;
  BlockCopy copy_;
};

class ReverseSequence : public Kernel {
 public:
  explicit ReverseSequence(const Image& image) : Kernel(image) {
    image.attributes.expect_only({"batch_axis", "time_axis"});
    image.expect_counts(2, 1);
    image.expect_same_dtype(0, 2);
    expect_index_dtype(image, 1);
    const Tensor& in = tensor(0);
    image.expect_dims(2, in.dims);
    batch_ = image.attributes.axis("batch_axis", in.rank());
    time_ = image.attributes.axis("time_axis", in.rank());
    if (batch_ == time_) refuse("attributes.time_axis: expected another dim than the batch's, got ", time_, " for both");
    image.expect_dims(1, {in.dims[batch_]});
    Dims dims = in.dims;
    dims[batch_] = dims[time_] = 1;
    slice_ = BlockCopy(dims, in.strides, tensor(2).strides, in.bytes());
  }

 private:
  void run(const Operands& operands, int threads) const override {
    const Tensor& in = tensor(0);
    const Tensor& out = tensor(2);
    const std::int64_t steps = in.dims[time_];
    const std::int64_t bytes = in.bytes();
    IndexCheck check;
    const int used = useful_threads(threads, in.dims[batch_], in.elements(), 1);
    parallel_ranges(used, in.dims[batch_], [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t b = first; b < last; ++b) {
        const std::int64_t given = read_index(operands.at(1), tensor(1).dtype, b * tensor(1).strides[0]);
        // A length is a position in a dim that has one more.
        const std::int64_t length = check.position(given < 0 ? std::numeric_limits<std::int64_t>::max() : given, steps + 1);
        if (check.failed()) return;
        const std::byte* source = operands.at(0) + b * in.strides[batch_] * bytes;
        std::byte* destination = operands.at(2) + b * out.strides[batch_] * bytes;
        for (std::int64_t t = 0; t < steps; ++t) {
          const std::int64_t from = t < length ? length - 1 - t : t;
          slice_(source + from * in.strides[time_] * bytes, destination + t * out.strides[time_] * bytes);
        }
      }
    });
    if (check.failed()) refuse("tensors[1]: a length is not from 0 to ", steps);
  }

  std::size_t batch_ = 0;
  std::size_t time_ = 0;
  BlockCopy slice_;
};

}  // namespace

std::unique_ptr<Kernel> make_slice(const Image& image) { return std::make_unique<Slice>(image); }
std::unique_ptr<Kernel> make_reverse_sequence(const Image& image) { return std::make_unique<ReverseSequence>(image); }

}  // namespace hipdnn_port::kernels
