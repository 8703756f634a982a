// `pad`: a tensor with borders of zeros, of another byte, or made of its own elements.
#include "../engines/rowwise_parallel.h"
#include "functions.h"
#include "layout.h"

namespace hipdnn_port::kernels {
namespace {

enum class Border : std::uint8_t { reflect, edge, wrap, zeros };

/// Of an element that is in the border of zeros.
constexpr std::int64_t nowhere = -1;

/// Remainder with the sign of the divisor.
std::int64_t modulo(std::int64_t a, std::int64_t b) {
  const std::int64_t r = a % b;
  return r < 0 ? r + b : r;
}

class Pad : public Kernel {
 public:
  explicit Pad(const Image& image) : Kernel(image) {
    image.attributes.expect_only({"fill", "low", "mode"});
    image.expect_counts(1, 1);
    image.expect_same_dtype(0, 1);
    const Tensor& in = tensor(0);
    const Tensor& out = tensor(1);
    if (in.rank() != out.rank()) refuse("tensors[1].dims: expected ", in.rank(), " dims, got ", show(out.dims));
    low_ = image.attributes.integers("low", in.rank());
    border_ = static_cast<Border>(image.attributes.choice("mode", {"reflect", "edge", "wrap", "zeros"}));
    if (image.attributes.has("fill")) fill_ = image.attributes.integer("fill", -128, 255);
    if (fill_ != 0 && (border_ != Border::zeros || in.bytes() != 1)) refuse("attributes.fill: expected the mode zeros and elements of one byte");
    for (std::size_t d = 0; d < in.rank(); ++d) {
      constexpr std::int64_t limit = std::int64_t{1} << 60;
      if (std::max({in.dims[d], out.dims[d], low_[d], -low_[d]}) > limit) refuse("attributes.low[", d, "]: sizes beyond 2^60 at dim ", d);
    }
    if (in.elements() == 0 && out.elements() != 0 && border_ != Border::zeros) refuse("tensors[0].dims: no elements to make a border of");
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
        bool is_border = in.elements() == 0;
        for (std::size_t d = outer; d-- > 0;) {
          const std::int64_t element = source(rest % out.dims[d], d);
          is_border = is_border || element == nowhere;
          from += element * in.strides[d];
          to += rest % out.dims[d] * out.strides[d];
          rest /= out.dims[d];
        }
        std::byte* const destination = operands.at(1) + to * in.bytes();
        if (is_border) {
          clear_row(destination);
        } else {
          copy_row(operands.at(0) + from * in.bytes(), destination);
        }
      }
    });
  }

  /// Which element of dim `d` shows at position `at`, or `nowhere`.
  std::int64_t source(std::int64_t at, std::size_t d) const {
    const std::int64_t size = tensor(0).dims[d];
    const std::int64_t position = at - low_[d];
    if (position >= 0 && position < size) return position;
    if (border_ == Border::zeros) return nowhere;
    if (border_ == Border::edge || size == 1) return position < 0 ? 0 : size - 1;
    if (border_ == Border::wrap) return modulo(position, size);
    const std::int64_t folded = modulo(position, 2 * (size - 1));
    return std::min(folded, 2 * (size - 1) - folded);
  }

  void clear_row(std::byte* destination_row) const {
    const Tensor& out = tensor(1);
    for_element_size(out.bytes(), [&]<class T>(T) {
      T* to = reinterpret_cast<T*>(destination_row);
      const std::int64_t size = out.rank() == 0 ? 1 : out.dims.back();
      const std::int64_t step = out.rank() == 0 ? 1 : out.strides.back();
      for (std::int64_t i = 0; i < size; ++i) to[i * step] = static_cast<T>(fill_);
    });
  }

  template <class T>
  T border_element(const T* from, std::int64_t at, std::size_t d) const {
    const std::int64_t element = source(at, d);
    return element == nowhere ? static_cast<T>(fill_) : from[element * tensor(0).strides[d]];
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
      for (std::int64_t i = 0; i < inner; ++i) to[i * to_step] = border_element(from, i, d);
      if (from_step == 1 && to_step == 1 && after > inner) {
        std::memmove(to + inner, from + (inner - low_[d]), static_cast<std::size_t>(after - inner) * sizeof(T));
      } else {
        for (std::int64_t i = inner; i < after; ++i) to[i * to_step] = from[(i - low_[d]) * from_step];
      }
      for (std::int64_t i = after; i < size; ++i) to[i * to_step] = border_element(from, i, d);
    });
  }

  Dims low_;
  Border border_ = Border::reflect;
  std::int64_t fill_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_pad(const Image& image) { return std::make_unique<Pad>(image); }

}  // namespace hipdnn_port::kernels
