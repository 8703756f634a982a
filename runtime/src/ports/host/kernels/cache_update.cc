// `cache_update`: a cache of attention with new rows at a computed position. A cache may lie in pages, which a table names for each sequence.
#include "functions.h"
#include "moves.h"
#include "pages.h"

namespace hipdnn_port::kernels {
namespace {

constexpr std::size_t rows_dim = 2;
constexpr std::size_t table = 3, paged_ins = 4;

class CacheUpdate : public Kernel {
 public:
  explicit CacheUpdate(const Image& image) : Kernel(image) {
    image.attributes.expect_only({});
    const bool is_paged = image.tensors.size() == paged_ins + 1;
    out_ = is_paged ? paged_ins : table;
    image.expect_counts(out_, 1);
    image.expect_same_dtype(0, 1);
    image.expect_same_dtype(0, out_);
    expect_index_dtype(image, 2);
    const Tensor& cache = tensor(0);
    const Tensor& fresh = tensor(1);
    const Tensor& out = tensor(out_);
    if (out.rank() != 4) refuse("tensors[", out_, "].dims: expected 4 dims, got ", show(out.dims));
    expect_inside(image, 0, out_, out.rank());
    if (fresh.rank() != out.rank()) refuse("tensors[1].dims: expected 4 dims, got ", show(fresh.dims));
    for (const std::size_t d : {0, 1, 3}) {
      const bool is_any = d == 0 && is_paged;  // pages are of no batch
      if (cache.dims[d] != out.dims[d] || (fresh.dims[d] != out.dims[d] && !is_any)) {
        refuse("tensors[", out_, "].dims: expected those of the cache but for dim 2");
      }
    }
    const std::int64_t starts = tensor(2).elements();
    if (tensor(2).rank() != 1 || (starts != 1 && starts != fresh.dims[0])) refuse("tensors[2].dims: expected one start, or one for each batch");
    if (is_paged) expect_table(image);
    kept_ = BlockCopy(cache.dims, cache.strides, out.strides, out.bytes());
    Dims dims = part(fresh.dims, 1, 4);
    if (is_paged) dims[1] = 1;  // a page may end behind each row
    fresh_ = BlockCopy(dims, part(fresh.strides, 1, 4), part(out.strides, 1, 4), out.bytes());
    Dims rest = out.dims;
    rest[rows_dim] -= cache.dims[rows_dim];
    rest_ = Walk(rest, out.strides);
    rest_count_ = product(rest);
  }

 private:
  void run(const Operands& operands, int threads) const override {
    const Tensor& cache = tensor(0);
    const Tensor& fresh = tensor(1);
    const Tensor& out = tensor(out_);
    const bool is_in_place = operands.at(0) == operands.at(out_) && cache.strides == out.strides;
    if (!is_in_place && cache.elements() != 0) kept_.run(operands.at(0), operands.at(out_), threads);
    clear_rest(operands.at(out_) + cache.dims[rows_dim] * out.strides[rows_dim] * out.bytes());
    if (fresh.elements() == 0) return;
    const std::int64_t rows = out.dims[rows_dim] * (is_paged() ? tensor(table).dims[1] : 1);
    for (std::int64_t batch = 0; batch < fresh.dims[0]; ++batch) {
      const std::int64_t at = tensor(2).elements() == 1 ? 0 : batch * tensor(2).strides[0];
      const std::int64_t start = read_index(operands.at(2), tensor(2).dtype, at);
      if (start < 0 || start > rows - fresh.dims[rows_dim]) {
        refuse("tensors[2]: ", fresh.dims[rows_dim], " rows from ", start, " on do not fit into a cache of ", rows);
      }
      const std::byte* const from = operands.at(1) + batch * fresh.strides[0] * out.bytes();
      if (is_paged()) {
        write_rows(operands, batch, start, from);
      } else {
        fresh_(from, operands.at(out_) + (batch * out.strides[0] + start * out.strides[rows_dim]) * out.bytes());
      }
    }
  }

  bool is_paged() const { return out_ == paged_ins; }

  void write_rows(const Operands& operands, std::int64_t batch, std::int64_t start, const std::byte* from) const {
    const Tensor& fresh = tensor(1);
    const Tensor& out = tensor(out_);
    for (std::int64_t i = 0; i < fresh.dims[rows_dim]; ++i) {
      const Place place = place_in_pages(operands, tensor(table), table, {.batch = batch, .row = start + i, .pages = out.dims[0], .page_rows = out.dims[rows_dim]});
      fresh_(from + i * fresh.strides[rows_dim] * out.bytes(), operands.at(out_) + (place.page * out.strides[0] + place.row * out.strides[rows_dim]) * out.bytes());
    }
  }

  void expect_table(const Image& image) const {
    expect_page_table(image, table, tensor(1).dims[0]);
    image.expect_dims(0, tensor(out_).dims);
    if (tensor(out_).dims[rows_dim] < 1) refuse("tensors[0].dims: expected pages of one row or more, got ", show(tensor(0).dims));
  }

  /// Rows behind those of the cache.
  void clear_rest(std::byte* first) const {
    for_element_size(tensor(out_).bytes(), [&]<class T>(T) {
      T* const to = reinterpret_cast<T*>(first);
      rest_.for_runs(0, rest_count_, [&](std::int64_t offset, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) to[offset + i * rest_.inner_stride()] = T{};
      });
    });
  }

  std::size_t out_ = table;
  BlockCopy kept_, fresh_;
  Walk rest_;
  std::int64_t rest_count_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_cache_update(const Image& image) { return std::make_unique<CacheUpdate>(image); }

}  // namespace hipdnn_port::kernels
