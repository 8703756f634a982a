// `decode_attention`: the step of one new token of attention over a cache, which gets a new row. The cache may lie in pages, which a table names, or
// a bias be added to the scores. Written to be read, as what others are compared with.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "../engines/rowwise_parallel.h"
#include "elements.h"
#include "functions.h"
#include "layout.h"
#include "moves.h"
#include "pages.h"

namespace hipdnn_port::kernels {
namespace {

enum In : std::size_t { query, key, value, key_cache, value_cache, start_of, count_of, cosines, sines };
constexpr std::size_t most_ins = 9, outs = 3;  // without a table of pages or a bias, which is the last operand
/// Numbers of a head whose sums are kept at once; a launch allocates nothing.
constexpr std::int64_t at_once = 64;

class DecodeAttention : public Kernel {
 public:
  explicit DecodeAttention(const Image& image) : Kernel(image) {
    image.attributes.expect_only({"scale", "left"});
    is_turned_ = image.inputs >= most_ins;
    const std::size_t plain = is_turned_ ? most_ins : cosines;
    first_out_ = image.inputs == plain + 1 ? plain + 1 : plain;
    image.expect_counts(first_out_, outs);
    if (first_out_ > plain) (is_float(tensor(plain).dtype) ? bias_ : table_) = plain;
    scale_ = image.attributes.real("scale");
    left_ = image.attributes.integer("left", -1, std::numeric_limits<std::int32_t>::max());
    const Tensor& q = tensor(query);
    if (!is_float(q.dtype)) refuse("tensors[0].dtype: expected a float type, got ", info_of(q.dtype).name);
    if (q.rank() != 4 || q.dims[2] != 1) refuse("tensors[0].dims: expected one query of 4 dims, got ", show(q.dims));
    const Tensor& cache = tensor(key_cache);
    if (cache.rank() != 4 || cache.dims[1] < 1 || q.dims[1] % cache.dims[1] != 0 || cache.dims[2] < 1) {
      refuse("tensors[3].dims: expected a cache of rows for a divisor of the heads, got ", show(cache.dims));
    }
    if (table_) expect_page_table(image, *table_, q.dims[0]);
    if (bias_) expect_bias({q.dims[0], q.dims[1], 1, cache.dims[2]});
    const Dims kept{table_ ? cache.dims[0] : q.dims[0], cache.dims[1], cache.dims[2], q.dims[3]};
    const Dims fresh{q.dims[0], cache.dims[1], 1, q.dims[3]};
    for (const std::size_t i : {std::size_t{key_cache}, std::size_t{value_cache}, first_out_ + 1, first_out_ + 2}) image.expect_dims(i, kept);
    for (const std::size_t i : {key, value}) image.expect_dims(i, fresh);
    image.expect_dims(first_out_, q.dims);
    for (std::size_t i = 0; i < first_out_ + outs; ++i) {
      if (i != start_of && i != count_of && i != table_ && i != bias_) image.expect_same_dtype(query, i);
    }
    for (const std::size_t i : {start_of, count_of}) {
      expect_index_dtype(image, i);
      if (tensor(i).rank() != 1 || (tensor(i).dims[0] != 1 && tensor(i).dims[0] != q.dims[0])) {
        refuse("tensors[", i, "].dims: expected one number, or one for each batch, got ", show(tensor(i).dims));
      }
    }
    for (std::size_t i = cosines; i < plain; ++i) {
      const Dims& dims = tensor(i).dims;
      if (dims.size() != 4 || (dims[0] != 1 && dims[0] != q.dims[0]) || dims[1] != 1 || dims[2] != 1 || 2 * dims[3] > q.dims[3]) {
        refuse("tensors[", i, "].dims: expected [batch or 1, 1, 1, up to half a head], got ", show(dims));
      }
      image.expect_dims(i, tensor(cosines).dims);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      kept_[i] = BlockCopy(cache.dims, tensor(key_cache + i).strides, tensor(first_out_ + 1 + i).strides, cache.bytes());
    }
  }

 private:
  void run(const Operands& operands, int threads) const override {
    const Dims& dims = tensor(query).dims;
    const std::int64_t rows = tensor(key_cache).dims[2] * (table_ ? tensor(*table_).dims[1] : 1);
    for (std::int64_t b = 0; b < dims[0]; ++b) {
      const std::int64_t start = number(operands, start_of, b), count = number(operands, count_of, b);
      if (start < 0 || start >= rows) refuse("tensors[5]: there is no row ", start, " in a cache of ", rows);
      if (count < 1 || count > rows) refuse("tensors[6]: expected 1 to ", rows, " keys, got ", count);
      for (std::int64_t row = 0; table_ && row < count; row += tensor(key_cache).dims[2]) place_of(operands, b, row);  // errors come before threads
    }
    for_dtype(tensor(query).dtype, [&]<class T>(T) {
      for (std::size_t i = 0; i < 2; ++i) {
        const std::size_t in = key_cache + i, out = first_out_ + 1 + i;
        const bool is_in_place = operands.at(in) == operands.at(out) && tensor(in).strides == tensor(out).strides;
        if (!is_in_place) kept_[i].run(operands.at(in), operands.at(out), threads);
        add_rows<T>(operands, key + i, out);
      }
      const std::int64_t heads = dims[0] * dims[1];
      parallel_ranges(useful_threads(threads, heads, heads * rows * dims[3], 16), heads, [&](std::int64_t first, std::int64_t last, int) {
        for (std::int64_t head = first; head < last; ++head) attend<T>(operands, head / dims[1], head % dims[1]);
      });
    });
  }

  void expect_bias(const Dims& scores) const {
    const Dims& dims = tensor(*bias_).dims;
    const bool fits = std::ranges::equal(dims, scores, [](std::int64_t size, std::int64_t wanted) { return size == 1 || size == wanted; });
    if (!fits) refuse("tensors[", *bias_, "].dims: expected a bias for scores of ", show(scores), ", got ", show(dims));
  }

  std::int64_t number(const Operands& operands, std::size_t i, std::int64_t batch) const {
    return read_index(operands.at(i), tensor(i).dtype, tensor(i).dims[0] == 1 ? 0 : batch * tensor(i).strides[0]);
  }

  /// The new keys or values in the cache.
  template <class T>
  void add_rows(const Operands& operands, std::size_t in, std::size_t out) const {
    const Tensor& to = tensor(out);
    for (std::int64_t b = 0; b < tensor(query).dims[0]; ++b) {
      const std::int64_t start = number(operands, start_of, b);
      const Place place = place_of(operands, b, start);
      for (std::int64_t h = 0; h < to.dims[1]; ++h) {
        for (std::int64_t d = 0; d < to.dims[3]; ++d) {
          const double x = in == key ? turned<T>(operands, in, b, h, d) : element<T>(operands, in, b, h, 0, d);
          operands.at<T>(out)[place.page * to.strides[0] + h * to.strides[1] + place.row * to.strides[2] + d * to.strides[3]] = from_real<T>(x);
        }
      }
    }
  }

  /// Where a row of a sequence lies in a cache: its page is its batch where there are no pages.
  Place place_of(const Operands& operands, std::int64_t b, std::int64_t row) const {
    if (!table_) return {b, row};
    const Dims& cache = tensor(key_cache).dims;
    return place_in_pages(operands, tensor(*table_), *table_, {.batch = b, .row = row, .pages = cache[0], .page_rows = cache[2]});
  }

  template <class T>
  double cached(const Operands& operands, std::size_t i, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t d) const {
    const Place place = place_of(operands, b, row);
    return element<T>(operands, i, place.page, h, place.row, d);
  }

  template <class T>
  double element(const Operands& operands, std::size_t i, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t d) const {
    const auto& s = tensor(i).strides;
    const std::int64_t batch = tensor(i).dims[0] == 1 ? 0 : b;
    return static_cast<double>(Element<T>::load(operands.at<T>(i)[batch * s[0] + h * s[1] + row * s[2] + d * s[3]]));
  }

  /// A number of a new head, rotated with the one that is half the rotated width away.
  template <class T>
  double turned(const Operands& operands, std::size_t i, std::int64_t b, std::int64_t h, std::int64_t d) const {
    const std::int64_t half = is_turned_ ? tensor(cosines).dims[3] : 0;
    const double x = element<T>(operands, i, b, h, 0, d);
    if (d >= 2 * half) return x;
    const std::int64_t angle = d % half;
    const double pair = element<T>(operands, i, b, h, 0, d < half ? d + half : d - half);
    const double turn = pair * element<T>(operands, sines, b, 0, 0, angle);
    return x * element<T>(operands, cosines, b, 0, 0, angle) + (d < half ? -turn : turn);
  }

  template <class T>
  void attend(const Operands& operands, std::int64_t b, std::int64_t h) const {
    const Dims& dims = tensor(query).dims;
    const std::int64_t kv = h / (dims[1] / tensor(key_cache).dims[1]), count = number(operands, count_of, b);
    const std::int64_t low = left_ > 0 ? std::max<std::int64_t>(count - left_, 0) : 0;
    double most = -std::numeric_limits<double>::infinity();
    for (std::int64_t row = low; row < count; ++row) most = std::max(most, score<T>(operands, b, h, kv, row));
    const auto& to = tensor(first_out_).strides;
    for (std::int64_t begin = 0; begin < dims[3]; begin += at_once) {
      const std::int64_t width = std::min(at_once, dims[3] - begin);
      std::array<double, at_once> sums{};
      double total = 0;
      for (std::int64_t row = low; row < count; ++row) {
        const double weight = std::exp(score<T>(operands, b, h, kv, row) - most);
        total += weight;
        for (std::int64_t d = 0; d < width; ++d) sums[d] += weight * cached<T>(operands, first_out_ + 2, b, kv, row, begin + d);
      }
      for (std::int64_t d = 0; d < width; ++d) {
        operands.at<T>(first_out_)[b * to[0] + h * to[1] + (begin + d) * to[3]] = from_real<T>(sums[d] / total);
      }
    }
  }

  template <class T>
  double score(const Operands& operands, std::int64_t b, std::int64_t h, std::int64_t kv, std::int64_t row) const {
    double sum = 0;
    for (std::int64_t d = 0; d < tensor(query).dims[3]; ++d) {
      sum += turned<T>(operands, query, b, h, d) * cached<T>(operands, first_out_ + 1, b, kv, row, d);
    }
    return scale_ * sum + (bias_ ? added(operands, {b, h, 0, row}) : 0.0);
  }

  double added(const Operands& operands, const std::array<std::int64_t, 4>& place) const {
    const Tensor& bias = tensor(*bias_);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < place.size(); ++i) offset += bias.dims[i] == 1 ? 0 : place[i] * bias.strides[i];
    double found = 0;
    for_dtype(bias.dtype, [&]<class T>(T) { found = static_cast<double>(Element<T>::load(operands.at<T>(*bias_)[offset])); });
    return found;
  }

  bool is_turned_ = false;
  std::optional<std::size_t> table_, bias_;
  std::size_t first_out_ = 0;
  double scale_ = 0;
  std::int64_t left_ = 0;
  std::array<BlockCopy, 2> kept_;
};

}  // namespace

std::unique_ptr<Kernel> make_decode_attention(const Image& image) { return std::make_unique<DecodeAttention>(image); }

}  // namespace hipdnn_port::kernels
