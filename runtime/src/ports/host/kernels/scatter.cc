// `scatter_elements` and `scatter_nd`: a copy of a tensor with elements, or slices, replaced or combined at computed positions.
#include "elements.h"
#include "functions.h"
#include "moves.h"

namespace hipdnn_port::kernels {
namespace {

enum class Reduction : std::uint8_t { none, add, mul, min, max };

Reduction read_reduction(const Image& image) {
  const auto reduction = static_cast<Reduction>(image.attributes.choice("reduction", {"none", "add", "mul", "min", "max"}));
  if (reduction != Reduction::none && image.tensors[0].dtype == DType::boolean) refuse("attributes.reduction: bool has none");
  return reduction;
}

/// Updates combined with what is there, a block for every move, in order: a position met twice has both.
class BlockCombine {
 public:
  BlockCombine() = default;
  BlockCombine(Dims dims, Dims source, Dims destination, DType dtype, Reduction reduction)
      : dims_(std::move(dims)), source_(std::move(source)), destination_(std::move(destination)), dtype_(dtype), reduction_(reduction) {
    Dims* const both[] = {&source_, &destination_};
    join_dims(dims_, both);
    count_ = product(dims_);
  }

  void operator()(std::span<const Move> moves, const std::byte* source, std::byte* destination) const {
    for_dtype(dtype_, [&]<class T>(T) {
      const T* from = reinterpret_cast<const T*>(source);
      T* to = reinterpret_cast<T*>(destination);
      switch (reduction_) {
        case Reduction::add: return combine<Plus>(moves, from, to);
        case Reduction::mul: return combine<Times>(moves, from, to);
        case Reduction::min: return combine<Least>(moves, from, to);
        default: return combine<Greatest>(moves, from, to);
      }
    });
  }

 private:
  template <class Operation, class T>
  void combine(std::span<const Move> moves, const T* source, T* destination) const {
    for (const Move& move : moves) {
      for (std::int64_t i = 0; i < count_; ++i) {
        T& target = destination[move.destination + offset_of(dims_, destination_, i)];
        const T update = source[move.source + offset_of(dims_, source_, i)];
        target = Element<T>::store(Operation::of(Element<T>::load(target), Element<T>::load(update)));
      }
    }
  }

  Dims dims_, source_, destination_;
  DType dtype_ = DType::f32;
  Reduction reduction_ = Reduction::none;
  std::int64_t count_ = 0;
};

/// What both functions do once their walks are known.
class Scatter : public Kernel {
 public:
  explicit Scatter(const Image& image) : Kernel(image), reduction_(read_reduction(image)) {
    image.expect_counts(3, 1);
    image.expect_same_dtype(0, 2);
    image.expect_same_dtype(0, 3);
    expect_index_dtype(image, 1);
    image.expect_dims(3, tensor(0).dims);
    copy_ = BlockCopy(tensor(0).dims, tensor(0).strides, tensor(3).strides, tensor(0).bytes());
  }

 protected:
  void set_slice(const Dims& dims, const Dims& source, const Dims& destination) {
    slice_ = BlockCopy(dims, source, destination, tensor(0).bytes());
    combine_ = BlockCombine(dims, source, destination, tensor(0).dtype, reduction_);
  }

  std::int64_t count_ = 0;
  /// Indices of one move, `index_step_` elements apart; one each for the dims of `sizes_` and `strides_`.
  std::int64_t index_step_ = 0;
  Dims sizes_, strides_;
  Walk source_, index_, destination_;

 private:
  // Positions may repeat, and then the order of updates counts: one thread does them all.
  void run(const Operands& operands, int threads) const override {
    const bool is_in_place = operands.at(0) == operands.at(3) && tensor(0).strides == tensor(3).strides;
    if (!is_in_place) copy_.run(operands.at(0), operands.at(3), threads);
    IndexCheck check;
    Moves moves;
    for (std::int64_t first = 0; first < count_; first += move_chunk) {
      const std::int64_t size = std::min(move_chunk, count_ - first);
      for_offsets(source_, first, size, [&](std::size_t i, std::int64_t offset) { moves[i].source = offset; });
      for_offsets(destination_, first, size, [&](std::size_t i, std::int64_t offset) { moves[i].destination = offset; });
      for_offsets(index_, first, size, [&](std::size_t i, std::int64_t offset) {
        for (std::size_t d = 0; d < sizes_.size(); ++d) {
          const std::int64_t at = offset + static_cast<std::int64_t>(d) * index_step_;
          moves[i].destination += check.position(read_index(operands.at(1), tensor(1).dtype, at), sizes_[d]) * strides_[d];
        }
      });
      check.finish(1);
      const auto chunk = std::span<const Move>(moves).first(static_cast<std::size_t>(size));
      if (reduction_ == Reduction::none) {
        move_slices(slice_, tensor(0).bytes(), chunk, operands.at(2), operands.at(3));
      } else {
        combine_(chunk, operands.at(2), operands.at(3));
      }
    }
  }

  Reduction reduction_;
  BlockCopy copy_;
  BlockCopy slice_;
  BlockCombine combine_;
};

class ScatterElements : public Scatter {
 public:
  explicit ScatterElements(const Image& image) : Scatter(image) {
    image.attributes.expect_only({"axis", "reduction"});
    const Tensor& indices = tensor(1);
    const Tensor& out = tensor(3);
    const std::size_t axis = image.attributes.axis("axis", out.rank());
    expect_inside(image, 1, 0, axis);
    image.expect_dims(2, indices.dims);
    count_ = indices.elements();
    Dims still = out.strides;
    still[axis] = 0;
    source_ = Walk(indices.dims, tensor(2).strides);
    index_ = Walk(indices.dims, indices.strides);
    destination_ = Walk(indices.dims, still);
    sizes_ = {out.dims[axis]};
    strides_ = {out.strides[axis]};
    set_slice({}, {}, {});
  }
};

class ScatterNd : public Scatter {
 public:
  explicit ScatterNd(const Image& image) : Scatter(image) {
    image.attributes.expect_only({"reduction"});
    const Tensor& indices = tensor(1);
    const Tensor& updates = tensor(2);
    const Tensor& out = tensor(3);
    if (indices.rank() == 0) refuse("tensors[1]: expected at least one dim");
    const std::size_t rows = indices.rank() - 1;
    if (indices.dims[rows] > static_cast<std::int64_t>(out.rank())) {
      refuse("tensors[1].dims: rows of ", indices.dims[rows], " indices, but only ", out.rank(), " dims to index");
    }
    const auto depth = static_cast<std::size_t>(indices.dims[rows]);
    image.expect_dims(2, joined(part(indices.dims, 0, rows), part(out.dims, depth, out.rank())));
    count_ = updates.elements() == 0 ? 0 : product(part(indices.dims, 0, rows));
    index_step_ = indices.strides[rows];
    source_ = Walk(part(indices.dims, 0, rows), part(updates.strides, 0, rows));
    index_ = Walk(part(indices.dims, 0, rows), part(indices.strides, 0, rows));
    destination_ = Walk(part(indices.dims, 0, rows), Dims(rows, 0));
    sizes_ = part(out.dims, 0, depth);
    strides_ = part(out.strides, 0, depth);
    set_slice(part(out.dims, depth, out.rank()), part(updates.strides, rows, updates.rank()), part(out.strides, depth, out.rank()));
  }
};

}  // namespace

std::unique_ptr<Kernel> make_scatter_elements(const Image& image) { return std::make_unique<ScatterElements>(image); }
std::unique_ptr<Kernel> make_scatter_nd(const Image& image) { return std::make_unique<ScatterNd>(image); }

}  // namespace hipdnn_port::kernels
