// `gather`: slices of a tensor taken at indices along one dim.
#include "../engines/rowwise_parallel.h"
#include "functions.h"
#include "moves.h"

namespace hipdnn_port::kernels {
namespace {

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
    image.expect_dims(2, joined(joined(part(data.dims, 0, axis), indices.dims), part(data.dims, axis + 1, data.rank())));

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
  void run(const Operands& operands, int threads) const override {
    IndexCheck check;
    const std::int64_t chunks = (index_count_ + move_chunk - 1) / move_chunk;
    const bool by_index = chunks >= outer_count_;
    const int used = useful_threads(threads, std::max(chunks, outer_count_), tensor(2).elements(), 1);
    parallel_ranges(used, by_index ? chunks : outer_count_, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t c = by_index ? first : 0; c < (by_index ? last : chunks) && !check.failed(); ++c) {
        run_chunk(operands, c * move_chunk, std::min(move_chunk, index_count_ - c * move_chunk), by_index ? 0 : first, by_index ? outer_count_ : last, check);
      }
    });
    check.finish(1);
  }

  void run_chunk(const Operands& operands, std::int64_t first, std::int64_t count, std::int64_t first_outer, std::int64_t last_outer,
                 IndexCheck& check) const {
    Moves moves;
    for_offsets(index_source_, first, count, [&](std::size_t i, std::int64_t offset) {
      moves[i].source = check.position(read_index(operands.at(1), tensor(1).dtype, offset), size_) * stride_;
    });
    for_offsets(index_destination_, first, count, [&](std::size_t i, std::int64_t offset) { moves[i].destination = offset; });
    if (check.failed()) return;
    for (std::int64_t outer = first_outer; outer < last_outer; ++outer) {
      const std::byte* source = operands.at(0) + offset_of(outer_source_.dims, outer_source_.strides, outer) * tensor(0).bytes();
      std::byte* destination = operands.at(2) + offset_of(outer_destination_.dims, outer_destination_.strides, outer) * tensor(0).bytes();
      move_slices(slice_, tensor(0).bytes(), std::span(moves).first(static_cast<std::size_t>(count)), source, destination);
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

}  // namespace hipdnn_port::kernels
