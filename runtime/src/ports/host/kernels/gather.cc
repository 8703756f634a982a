// `gather`: slices of a tensor taken at indices along one dim.
#include "../engines/rowwise_parallel.h"
#include "functions.h"
#include "layout.h"

namespace hipdnn_host::kernels {
namespace {

Dims part(const Dims& dims, std::size_t first, std::size_t last) {
  return {dims.begin() + static_cast<std::ptrdiff_t>(first), dims.begin() + static_cast<std::ptrdiff_t>(last)};
}

class Gather : public Kernel {
 public:
  explicit Gather(const Image& image) : Kernel(image) {
    image.attributes.expect_only({"axis"});
    image.expect_counts(2, 1);
    image.expect_same_dtype(0, 2);
    expect_index_dtype(image, 1);
    const Tensor& data = tensor(0);
    const Tensor& indices = tensor(1);
    const Tensor& out = tensor(2);
    const std::size_t axis = image.attributes.axis("axis", data.rank());
    Dims expected = part(data.dims, 0, axis);
    expected.insert(expected.end(), indices.dims.begin(), indices.dims.end());
    expected.insert(expected.end(), data.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.dims.end());
    image.expect_dims(2, expected);

    const std::size_t after = axis + indices.rank();
    outer_source_ = Walk(part(data.dims, 0, axis), part(data.strides, 0, axis));
    outer_destination_ = Walk(part(data.dims, 0, axis), part(out.strides, 0, axis));
    index_source_ = Walk(indices.dims, indices.strides);
    index_destination_ = Walk(indices.dims, part(out.strides, axis, after));
    outer_count_ = product(part(data.dims, 0, axis));
    index_count_ = indices.elements();
    size_ = data.dims[axis];
    stride_ = data.strides[axis];
    slice_ = BlockCopy(part(data.dims, axis + 1, data.rank()), part(data.strides, axis + 1, data.rank()),
                       part(out.strides, after, out.rank()), data.bytes());
  }

 private:
  /// Where a slice comes from and goes to, in elements.
  struct Move {
    std::int64_t source;
    std::int64_t destination;
  };
  static constexpr std::int64_t chunk = 256;

  void run(const Operands& operands, int threads) const override {
    IndexCheck check;
    const std::int64_t chunks = (index_count_ + chunk - 1) / chunk;
    const std::int64_t elements = outer_count_ * index_count_ * slice_.bytes() / tensor(0).bytes();
    const bool by_index = chunks >= outer_count_;
    const int used = useful_threads(threads, std::max(chunks, outer_count_), elements, 1);
    parallel_ranges(used, by_index ? chunks : outer_count_, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t c = by_index ? first : 0; c < (by_index ? last : chunks) && !check.failed(); ++c) {
        run_chunk(operands, c * chunk, std::min(chunk, index_count_ - c * chunk), by_index ? 0 : first, by_index ? outer_count_ : last, check);
      }
    });
    check.finish(1);
  }

  void run_chunk(const Operands& operands, std::int64_t first, std::int64_t count, std::int64_t first_outer, std::int64_t last_outer,
                 IndexCheck& check) const {
    std::array<Move, chunk> moves;
    std::size_t filled = 0;
    index_source_.for_runs(first, count, [&](std::int64_t offset, std::int64_t run) {
      for (std::int64_t i = 0; i < run; ++i) {
        const std::int64_t index = read_index(operands.at(1), tensor(1).dtype, offset + i * index_source_.inner_stride());
        moves[filled++].source = check.position(index, size_) * stride_;
      }
    });
    filled = 0;
    index_destination_.for_runs(first, count, [&](std::int64_t offset, std::int64_t run) {
      for (std::int64_t i = 0; i < run; ++i) moves[filled++].destination = offset + i * index_destination_.inner_stride();
    });
    if (check.failed()) return;
    for (std::int64_t outer = first_outer; outer < last_outer; ++outer) {
      const std::byte* source = operands.at(0) + offset_of(outer_source_.dims, outer_source_.strides, outer) * tensor(0).bytes();
      std::byte* destination = operands.at(2) + offset_of(outer_destination_.dims, outer_destination_.strides, outer) * tensor(0).bytes();
      move_slices({moves.data(), filled}, source, destination);
    }
  }

  void move_slices(std::span<const Move> moves, const std::byte* source, std::byte* destination) const {
    const std::int64_t bytes = tensor(0).bytes();
    if (slice_.is_contiguous() && slice_.bytes() == bytes) {
      for_element_size(bytes, [&]<class T>(T) {
        for (const Move& move : moves) reinterpret_cast<T*>(destination)[move.destination] = reinterpret_cast<const T*>(source)[move.source];
      });
    } else if (slice_.is_contiguous()) {
      const auto size = static_cast<std::size_t>(slice_.bytes());
      for (const Move& move : moves) std::memcpy(destination + move.destination * bytes, source + move.source * bytes, size);
    } else {
      for (const Move& move : moves) slice_(source + move.source * bytes, destination + move.destination * bytes);
    }
  }

  Walk outer_source_, outer_destination_;
  Walk index_source_, index_destination_;
  std::int64_t outer_count_ = 0;
  std::int64_t index_count_ = 0;
  /// Of the dim that is indexed.
  std::int64_t size_ = 0;
  std::int64_t stride_ = 0;
  BlockCopy slice_;
};

}  // namespace

std::unique_ptr<Kernel> make_gather(const Image& image) { return std::make_unique<Gather>(image); }

}  // namespace hipdnn_host::kernels
