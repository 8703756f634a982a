// `gather_elements` and `gather_nd`: elements, or slices, taken at computed positions.
#include "../engines/rowwise_parallel.h"
#include "functions.h"
#include "moves.h"

namespace hipdnn_port::kernels {
namespace {

class GatherElements : public Kernel {
 public:
  explicit GatherElements(const Image& image) : Kernel(image) {
    image.attributes.expect_only({"axis"});
    image.expect_counts(2, 1);
    image.expect_same_dtype(0, 2);
    expect_index_dtype(image, 1);
    const Tensor& data = tensor(0);
    const Tensor& indices = tensor(1);
    const std::size_t axis = image.attributes.axis("axis", data.rank());
    expect_inside(image, 1, 0, axis);
    image.expect_dims(2, indices.dims);
    Dims still = data.strides;
    still[axis] = 0;
    source_ = Walk(indices.dims, still);
    index_ = Walk(indices.dims, indices.strides);
    destination_ = Walk(indices.dims, tensor(2).strides);
    size_ = data.dims[axis];
    stride_ = data.strides[axis];
    element_ = BlockCopy({}, {}, {}, data.bytes());
  }

 private:
  void run(const Operands& operands, int threads) const override {
    IndexCheck check;
    const std::int64_t count = tensor(1).elements();
    const std::int64_t chunks = (count + move_chunk - 1) / move_chunk;
    parallel_ranges(useful_threads(threads, chunks, count, 2), chunks, [&](std::int64_t first, std::int64_t last, int) {
      Moves moves;
      for (std::int64_t c = first; c < last && !check.failed(); ++c) {
        const std::int64_t size = std::min(move_chunk, count - c * move_chunk);
        for_offsets(source_, c * move_chunk, size, [&](std::size_t i, std::int64_t offset) { moves[i].source = offset; });
        for_offsets(destination_, c * move_chunk, size, [&](std::size_t i, std::int64_t offset) { moves[i].destination = offset; });
        for_offsets(index_, c * move_chunk, size, [&](std::size_t i, std::int64_t offset) {
          moves[i].source += check.position(read_index(operands.at(1), tensor(1).dtype, offset), size_) * stride_;
        });
        if (check.failed()) return;
        move_slices(element_, tensor(0).bytes(), std::span(moves).first(static_cast<std::size_t>(size)), operands.at(0), operands.at(2));
      }
    });
    check.finish(1);
  }

  Walk source_, index_, destination_;
  std::int64_t size_ = 0;
  std::int64_t stride_ = 0;
  BlockCopy element_;
};

class GatherNd : public Kernel {
 public:
  explicit GatherNd(const Image& image) : Kernel(image) {
    image.attributes.expect_only({"batch_dims"});
    image.expect_counts(2, 1);
    image.expect_same_dtype(0, 2);
    expect_index_dtype(image, 1);
    const Tensor& data = tensor(0);
    const Tensor& indices = tensor(1);
    const Tensor& out = tensor(2);
    if (indices.rank() == 0) refuse("tensors[1]: expected at least one dim");
    const std::size_t rows = indices.rank() - 1;
    const auto least_rank = static_cast<std::int64_t>(std::min(data.rank(), rows));
    const auto batch = static_cast<std::size_t>(image.attributes.integer("batch_dims", 0, least_rank));
    depth_ = static_cast<std::size_t>(indices.dims[rows]);
    if (indices.dims[rows] > static_cast<std::int64_t>(data.rank() - batch)) {
      refuse("tensors[1].dims: rows of ", depth_, " indices, but only ", data.rank() - batch, " dims to index");
    }
    if (part(indices.dims, 0, batch) != part(data.dims, 0, batch)) refuse("tensors[1].dims: the first ", batch, " are not those of the data");
    const std::size_t inner = batch + depth_;
    image.expect_dims(2, joined(part(indices.dims, 0, rows), part(data.dims, inner, data.rank())));
    row_count_ = product(part(indices.dims, 0, rows));
    source_ = Walk(part(indices.dims, 0, rows), joined(part(data.strides, 0, batch), Dims(rows - batch, 0)));
    index_ = Walk(part(indices.dims, 0, rows), part(indices.strides, 0, rows));
    destination_ = Walk(part(indices.dims, 0, rows), part(out.strides, 0, rows));
    sizes_ = part(data.dims, batch, inner);
    strides_ = part(data.strides, batch, inner);
    slice_ = BlockCopy(part(data.dims, inner, data.rank()), part(data.strides, inner, data.rank()), part(out.strides, rows, out.rank()),
                       data.bytes());
  }

 private:
  void run(const Operands& operands, int threads) const override {
    IndexCheck check;
    const std::int64_t chunks = (row_count_ + move_chunk - 1) / move_chunk;
    const int used = useful_threads(threads, chunks, tensor(2).elements(), 1 + depth_);
    parallel_ranges(used, chunks, [&](std::int64_t first, std::int64_t last, int) {
      Moves moves;
      for (std::int64_t c = first; c < last && !check.failed(); ++c) {
        const std::int64_t size = std::min(move_chunk, row_count_ - c * move_chunk);
        for_offsets(source_, c * move_chunk, size, [&](std::size_t i, std::int64_t offset) { moves[i].source = offset; });
        for_offsets(destination_, c * move_chunk, size, [&](std::size_t i, std::int64_t offset) { moves[i].destination = offset; });
        for_offsets(index_, c * move_chunk, size, [&](std::size_t i, std::int64_t offset) {
          for (std::size_t d = 0; d < depth_; ++d) {
            const std::int64_t at = offset + static_cast<std::int64_t>(d) * tensor(1).strides.back();
            moves[i].source += check.position(read_index(operands.at(1), tensor(1).dtype, at), sizes_[d]) * strides_[d];
          }
        });
        if (check.failed()) return;
        move_slices(slice_, tensor(0).bytes(), std::span(moves).first(static_cast<std::size_t>(size)), operands.at(0), operands.at(2));
      }
    });
    check.finish(1);
  }

  std::size_t depth_ = 0;
  std::int64_t row_count_ = 0;
  Walk source_, index_, destination_;
  /// Of the dims that are indexed.
  Dims sizes_, strides_;
  BlockCopy slice_;
};

}  // namespace

std::unique_ptr<Kernel> make_gather_elements(const Image& image) { return std::make_unique<GatherElements>(image); }
std::unique_ptr<Kernel> make_gather_nd(const Image& image) { return std::make_unique<GatherNd>(image); }

}  // namespace hipdnn_port::kernels
