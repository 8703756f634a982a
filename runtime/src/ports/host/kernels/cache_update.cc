// `cache_update`: a cache of attention with new rows at a computed position.
#include "functions.h"
#include "moves.h"

namespace hipdnn_port::kernels {
namespace {

constexpr std::size_t rows_dim = 2;

class CacheUpdate : public Kernel {
 public:
  explicit CacheUpdate(const Image& image) : Kernel(image) {
    image.attributes.expect_only({});
    image.expect_counts(3, 1);
    image.expect_same_dtype(0, 1);
    image.expect_same_dtype(0, 3);
    expect_index_dtype(image, 2);
    const Tensor& cache = tensor(0);
    const Tensor& fresh = tensor(1);
    const Tensor& out = tensor(3);
    if (out.rank() != 4) refuse("tensors[3].dims: expected 4 dims, got ", show(out.dims));
    expect_inside(image, 0, 3, out.rank());
    if (fresh.rank() != out.rank()) refuse("tensors[1].dims: expected 4 dims, got ", show(fresh.dims));
    for (const std::size_t d : {0, 1, 3}) {
      if (cache.dims[d] != out.dims[d] || fresh.dims[d] != out.dims[d]) refuse("tensors[3].dims: expected those of the cache but for dim 2");
    }
    const std::int64_t starts = tensor(2).elements();
    if (tensor(2).rank() != 1 || (starts != 1 && starts != out.dims[0])) refuse("tensors[2].dims: expected one start, or one for each batch");
    kept_ = BlockCopy(cache.dims, cache.strides, out.strides, out.bytes());
    fresh_ = BlockCopy(part(fresh.dims, 1, 4), part(fresh.strides, 1, 4), part(out.strides, 1, 4), out.bytes());
    Dims rest = out.dims;
    rest[rows_dim] -= cache.dims[rows_dim];
    rest_ = Walk(rest, out.strides);
    rest_count_ = product(rest);
  }

 private:
  void run(const Operands& operands, int threads) const override {
    const Tensor& cache = tensor(0);
    const Tensor& fresh = tensor(1);
    const Tensor& out = tensor(3);
    const bool is_in_place = operands.at(0) == operands.at(3) && cache.strides == out.strides;
    if (!is_in_place && cache.elements() != 0) kept_.run(operands.at(0), operands.at(3), threads);
    clear_rest(operands.at(3) + cache.dims[rows_dim] * out.strides[rows_dim] * out.bytes());
    if (fresh.elements() == 0) return;
    for (std::int64_t batch = 0; batch < out.dims[0]; ++batch) {
      const std::int64_t at = tensor(2).elements() == 1 ? 0 : batch * tensor(2).strides[0];
      const std::int64_t start = read_index(operands.at(2), tensor(2).dtype, at);
      if (start < 0 || start > out.dims[rows_dim] - fresh.dims[rows_dim]) {
        refuse("tensors[2]: ", fresh.dims[rows_dim], " rows from ", start, " on do not fit into a cache of ", out.dims[rows_dim]);
      }
      fresh_(operands.at(1) + batch * fresh.strides[0] * out.bytes(),
             operands.at(3) + (batch * out.strides[0] + start * out.strides[rows_dim]) * out.bytes());
    }
  }

  /// Rows behind those of the cache.
  void clear_rest(std::byte* first) const {
    for_element_size(tensor(3).bytes(), [&]<class T>(T) {
      T* const to = reinterpret_cast<T*>(first);
      rest_.for_runs(0, rest_count_, [&](std::int64_t offset, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) to[offset + i * rest_.inner_stride()] = T{};
      });
    });
  }

  BlockCopy kept_, fresh_;
  Walk rest_;
  std::int64_t rest_count_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_cache_update(const Image& image) { return std::make_unique<CacheUpdate>(image); }

}  // namespace hipdnn_port::kernels
