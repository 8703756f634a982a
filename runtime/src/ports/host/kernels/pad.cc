// `pad`: a tensor with borders made of its own elements.
#include "../engines/rowwise_parallel.h"
#include "functions.h"
#include "layout.h"

namespace hipdnn_port::kernels {
namespace {

enum class Border : std::uint8_t { reflect, edge, wrap };

/// Remainder with the sign of the divisor.
std::int64_t modulo(std::int64_t a, std::int64_t b) {
  const std::int64_t r = a % b;
  return r < 0 ? r + b : r;
}

class Pad : public Kernel {
 public:
  explicit Pad(const Image& image) : Kernel(image) {
    image.attributes.expect_only({"low", "mode"});
    image.expect_counts(1, 1);
    image.expect_same_dtype(0, 1);
    const Tensor& in = tensor(0);
    const Tensor& out = tensor(1);
    if (in.rank() != out.rank()) refuse("tensors[1].dims: expected ", in.rank(), " dims, got ", show(out.dims));
    low_ = image.attributes.integers("low", in.rank());
    border_ = static_cast<Border>(image.attributes.choice("mode", {"reflect", "edge", "wrap"}));
    for (std::size_t d = 0; d < in.rank(); ++d) {
      constexpr std::int64_t limit = std::int64_t{1} << 60;
      if (std::max({in.dims[d], out.dims[d], low_[d], -low_[d]}) > limit) refuse("attributes.low[", d, "]: sizes beyond 2^60 at dim ", d);
    }
    if (in.elements() == 0 && out.elements() != 0) refuse("tensors[0].dims: no elements to make a border of");
  }

 private:
  void run(const Operands& operands, int threads) const override {
    const Tensor& in = tensor(0);
    const Tensor& out = tensor(1);
    const std::size_t outer = out.rank() == 0 ? 0 : out.rank() - 1;
    const std::int64_t rows = product(std::span(out.dims).first(outer));
    const int used = useful_threads(threads, rows, out.elements(), 2);
    parallel_ranges(used, rows, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t row = first; row < last; ++row) {
        std::int64_t rest = row, from = 0, to = 0;
        for (std::size_t d = outer; d-- > 0;) {
          from += source(rest % out.dims[d], d) * in.strides[d];
          to += rest % out.dims[d] * out.strides[d];
          rest /= out.dims[d];
        }
        copy_row(operands.at(0) + from * in.bytes(), operands.at(1) + to * in.bytes());
      }
    });
  }

  /// Which element of dim `d` shows at position `at`.
  std::int64_t source(std::int64_t at, std::size_t d) const {
    const std::int64_t size = tensor(0).dims[d];
    const std::int64_t position = at - low_[d];
    if (position >= 0 && position < size) return position;
    if (border_ == Border::edge || size == 1) return position < 0 ? 0 : size - 1;
    if (border_ == Border::wrap) return modulo(position, size);
    const std::int64_t folded = modulo(position, 2 * (size - 1));
    return std::min(folded, 2 * (size - 1) - folded);
  }

  void copy_row(const std::byte* source_row, std::byte* destination_row) const {
    const Tensor& out = tensor(1);
    for_element_size(out.bytes(), [&]<class T>(T) {
      const T* from = reinterpret_cast<const T*>(source_row);
      T* to = reinterpret_cast<T*>(destination_row);
      if (out.rank() == 0) {
        *to = *from;
        return;
      }
      const std::size_t d = out.rank() - 1;
      const std::int64_t from_step = tensor(0).strides[d];
      const std::int64_t to_step = out.strides[d];
      const std::int64_t size = out.dims[d];
      const std::int64_t inner = std::clamp<std::int64_t>(low_[d], 0, size);
      const std::int64_t after = std::clamp<std::int64_t>(low_[d] + tensor(0).dims[d], inner, size);
      for (std::int64_t i = 0; i < inner; ++i) to[i * to_step] = from[source(i, d) * from_step];
      if (from_step == 1 && to_step == 1 && after > inner) {
        std::memcpy(to + inner, from + (inner - low_[d]), static_cast<std::size_t>(after - inner) * sizeof(T));
      } else {
        for (std::int64_t i = inner; i < after; ++i) to[i * to_step] = from[(i - low_[d]) * from_step];
      }
      for (std::int64_t i = after; i < size; ++i) to[i * to_step] = from[source(i, d) * from_step];
    });
  }

  Dims low_;
  Border border_ = Border::reflect;
};

}  // namespace

std::unique_ptr<Kernel> make_pad(const Image& image) { return std::make_unique<Pad>(image); }

}  // namespace hipdnn_port::kernels
