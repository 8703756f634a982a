#include "onednn_memory.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace hipdnn_port::onednn {

namespace {

/// Its kernels count in 32 bits.
constexpr std::int64_t kLargestDim = std::numeric_limits<std::int32_t>::max();

/// Strides in the order `order` of dimensions, outermost first.
Dims strides_in_order(const Dims& dims, const std::vector<std::size_t>& order) {
  Dims strides(dims.size(), 1);
  std::int64_t stride = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    strides[*d] = stride;
    stride *= std::max<std::int64_t>(dims[*d], 1);
  }
  return strides;
}

/// True where two elements may share one address or lie at falling addresses: nothing oneDNN could describe.
bool overlaps(const Dims& dims, const Dims& strides) {
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] > 1) order.push_back(d);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return strides[a] < strides[b]; });
  std::int64_t extent = 1;
  for (const std::size_t d : order) {
    if (strides[d] < extent) return true;
    extent = strides[d] * dims[d];
  }
  return false;
}

}  // namespace

bool isa_includes(dnnl_cpu_isa_t isa) { return (dnnl_get_effective_cpu_isa() & isa) == isa; }

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

std::optional<std::string> refuses_dtype(const Tensor& tensor) {
  switch (tensor.dtype) {
    case HIPDNN_DATA_FLOAT:
      return std::nullopt;
    case HIPDNN_DATA_BFLOAT16:
      if (isa_includes(dnnl_cpu_isa_avx512_core)) return std::nullopt;
      return "tensor " + describe(tensor) + " is bfloat16, which oneDNN runs on AVX-512 CPUs only";
    case HIPDNN_DATA_HALF:
      if (isa_includes(dnnl_cpu_isa_avx512_core_fp16)) return std::nullopt;
      return "tensor " + describe(tensor) + " is float16, which oneDNN runs on CPUs with AVX512-FP16 only";
    default:
      return "tensor " + describe(tensor) + " has a data type other than float32, bfloat16 and float16";
  }
}

std::optional<std::string> refuses_tensor(const Tensor& tensor) {
  if (const auto reason = refuses_dtype(tensor)) return reason;
  return refuses_layout(tensor);
}

std::optional<std::string> refuses_layout(const Tensor& tensor) {
  if (tensor.dims.size() > DNNL_MAX_NDIMS) return "tensor " + describe(tensor) + " has more than 12 dimensions";
  if (tensor.element_count() == 0) return "tensor " + describe(tensor) + " has no elements";
  if (std::ranges::any_of(tensor.dims, [](std::int64_t size) { return size > kLargestDim; })) {
    return "tensor " + describe(tensor) + " has a dimension that oneDNN does not count: at most " + std::to_string(kLargestDim);
  }
  if (!tensor.is_virtual && overlaps(tensor.dims, tensor.strides)) {
    return "tensor " + describe(tensor) + " has strides that oneDNN cannot express (broadcast, reversed or overlapping)";
  }
  return std::nullopt;
}

Tensor broadcast_view(const Tensor& tensor, std::size_t rank) {
  Tensor view = tensor;
  while (view.dims.size() < rank) {
    view.dims.insert(view.dims.begin(), 1);
    view.strides.insert(view.strides.begin(), 1);
  }
  for (std::size_t d = 0; d < view.dims.size(); ++d) {
    if (view.strides[d] == 0) view.dims[d] = 1;
  }
  return view;
}

dnnl::memory::data_type data_type_of(hipdnnDataType_t type) {
  switch (type) {
    case HIPDNN_DATA_FLOAT:
      return dnnl::memory::data_type::f32;
    case HIPDNN_DATA_BFLOAT16:
      return dnnl::memory::data_type::bf16;
    case HIPDNN_DATA_HALF:
      return dnnl::memory::data_type::f16;
    case HIPDNN_DATA_INT8:
      return dnnl::memory::data_type::s8;
    case HIPDNN_DATA_UINT8:
      return dnnl::memory::data_type::u8;
    case HIPDNN_DATA_INT32:
      return dnnl::memory::data_type::s32;
    default:
      throw std::runtime_error("no oneDNN data type for hipDNN data type " + std::to_string(type));
  }
}

Dims plain_strides(const Dims& dims) {
  std::vector<std::size_t> order(dims.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return strides_in_order(dims, order);
}

Dims channels_last_strides(const Dims& dims) {
  std::vector<std::size_t> order{0};
  for (std::size_t d = 2; d < dims.size(); ++d) order.push_back(d);
  if (dims.size() > 1) order.push_back(1);
  return strides_in_order(dims, order);
}

bool same_layout(const Dims& dims, const Dims& a, const Dims& b) {
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] > 1 && a[d] != b[d]) return false;
  }
  return true;
}

Dims normalized_strides(const Dims& dims, const Dims& strides, bool prefer_plain) {
  const Dims plain = plain_strides(dims);
  const Dims last = channels_last_strides(dims);
  if (prefer_plain && same_layout(dims, strides, plain)) return plain;
  if (same_layout(dims, strides, last)) return last;
  if (same_layout(dims, strides, plain)) return plain;
  std::int64_t extent = 1;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] > 1) extent = std::max(extent, dims[d] * strides[d]);
  }
  Dims result = strides;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] <= 1) result[d] = extent;
  }
  return result;
}

dnnl::memory::desc memory_of(const Tensor& tensor, bool prefer_plain) {
  return memory_of(tensor.dims, data_type_of(tensor.dtype), normalized_strides(tensor.dims, tensor.strides, prefer_plain));
}

dnnl::memory::desc memory_of(const Dims& dims, dnnl::memory::data_type type, const Dims& strides) { return {dims, type, strides}; }

}  // namespace hipdnn_port::onednn
