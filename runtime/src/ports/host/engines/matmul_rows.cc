#include "matmul_rows.h"

#include <algorithm>

#include "onednn_memory.h"
#include "rowwise_program.h"

namespace hipdnn_port {

bool is_float_type(hipdnnDataType_t type) { return type == HIPDNN_DATA_FLOAT || type == HIPDNN_DATA_HALF || type == HIPDNN_DATA_BFLOAT16; }

Rows::Rows(const Tensor& tensor, const std::vector<std::int64_t>& dims) : dtype_(tensor.dtype) {
  const Tensor full = onednn::broadcast_view(tensor, dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const bool is_last = d + 1 == dims.size();
    const std::int64_t stride = full.dims[d] == 1 ? 0 : full.strides[d];
    if (dims[d] == 1 && !is_last) continue;
    // Dims of rows that lie one within the other are walked as one: finding a row takes a division for each.
    if (!is_last && !dims_.empty() && strides_.back() == stride * dims[d]) {
      dims_.back() *= dims[d];
      strides_.back() = stride;
    } else {
      dims_.push_back(dims[d]);
      strides_.push_back(stride);
    }
  }
  convert_to_ = find_conversion(HIPDNN_DATA_FLOAT, dtype_);
  convert_from_ = find_conversion(dtype_, HIPDNN_DATA_FLOAT);
}

void Rows::load(const void* base, std::int64_t row, std::int64_t first, std::int64_t count, float* to) const {
  TileArgs args{.rows = 1, .cols = count, .dst = to};
  args.src[0] = static_cast<const std::byte*>(base) + offset(row, first);
  args.src_col[0] = strides_.back();
  convert_from_(args);
}

void Rows::store(void* base, std::int64_t row, std::int64_t first, std::int64_t count, const float* from) const {
  TileArgs args{.rows = 1, .cols = count, .dst = static_cast<std::byte*>(base) + offset(row, first), .dst_col = strides_.back()};
  args.src[0] = from;
  args.src_col[0] = 1;
  convert_to_(args);
}

void* Rows::in_place(void* base, std::int64_t row, std::int64_t first) const {
  return dtype_ == HIPDNN_DATA_FLOAT && strides_.back() == 1 ? static_cast<std::byte*>(base) + offset(row, first) : nullptr;
}

std::optional<std::int64_t> Rows::step() const {
  if (dtype_ != HIPDNN_DATA_FLOAT || strides_.back() != 1 || dims_.size() > 2) return std::nullopt;
  return dims_.size() == 2 ? strides_.front() : 0;
}

std::int64_t Rows::offset(std::int64_t row, std::int64_t column) const {
  std::int64_t at = column * strides_.back();
  for (std::size_t d = dims_.size() - 1; d-- > 1; row /= dims_[d]) at += row % dims_[d] * strides_[d];
  if (dims_.size() > 1) at += row * strides_[0];
  return at * static_cast<std::int64_t>(element_bytes(dtype_));
}

std::size_t pointer_of(const Graph& graph, int tensor, const std::vector<std::int64_t>& uids) {
  return static_cast<std::size_t>(std::ranges::find(uids, graph.tensor(tensor).uid) - uids.begin());
}

}  // namespace hipdnn_port
