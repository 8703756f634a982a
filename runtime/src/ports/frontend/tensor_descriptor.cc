// Checks a tensor and makes the engines' view of it.
#include "tensor_descriptor.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "names.h"
#include "status.h"

namespace hipdnn_port {
namespace {

constexpr std::int64_t most_elements = std::numeric_limits<std::int64_t>::max() / 8;

/// Throws where 1 + sum((dim - 1) * stride) elements of up to 8 bytes cannot be addressed.
void check_extent(const Tensor& tensor) {
  std::int64_t last = 0;
  std::int64_t count = 1;
  for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
    std::int64_t reach = 0;
    const bool overflows = __builtin_mul_overflow(tensor.dims[i] - 1, tensor.strides[i], &reach) ||
                           __builtin_add_overflow(last, reach, &last) || __builtin_mul_overflow(count, tensor.dims[i], &count);
    if (overflows || last >= most_elements || count >= most_elements) {
      fail(HIPDNN_STATUS_BAD_PARAM, "tensor ", describe(tensor), ": dims and strides ", show(tensor.strides), " exceed the address range");
    }
  }
}

void check_shape(const Tensor& tensor) {
  if (tensor.dims.size() != tensor.strides.size()) {
    fail(HIPDNN_STATUS_BAD_PARAM, "tensor ", describe(tensor), ": expected ", tensor.dims.size(), " strides as there are dims, got ",
         tensor.strides.size());
  }
  if (std::ranges::any_of(tensor.dims, [](std::int64_t dim) { return dim <= 0; })) {
    fail(HIPDNN_STATUS_BAD_PARAM, "tensor ", describe(tensor), ": every dim must be positive");
  }
  if (std::ranges::any_of(tensor.strides, [](std::int64_t stride) { return stride < 0; })) {
    fail(HIPDNN_STATUS_BAD_PARAM, "tensor ", describe(tensor), ": strides ", show(tensor.strides), " must not be negative");
  }
  check_extent(tensor);
}

void check_value(const Tensor& tensor) {
  if (!tensor.value) return;
  if (tensor.is_virtual) fail(HIPDNN_STATUS_BAD_PARAM, "tensor ", describe(tensor), " has a baked value: it cannot be virtual");
  if (tensor.element_count() != 1) fail(HIPDNN_STATUS_BAD_PARAM, "tensor ", describe(tensor), " has a baked value: it must be one element");
  if (tensor.value->size() != element_bytes(tensor.dtype)) {
    fail(HIPDNN_STATUS_BAD_PARAM, "tensor ", describe(tensor), ": the baked value has ", tensor.value->size(), " bytes, expected ",
         element_bytes(tensor.dtype));
  }
}

std::size_t value_bytes(hipdnnDataType_t type) {
  try {
    return element_bytes(type);
  } catch (const std::invalid_argument& reason) {
    fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(HIPDNN_ATTR_TENSOR_VALUE_EXT), ": ", reason.what(), ", a value cannot be baked");
  }
}

}  // namespace

void TensorDescriptor::on_set(int name) {
  if (name == HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT) {
    const std::int64_t alignment = integer(name);
    if (alignment <= 0 || !std::has_single_bit(static_cast<std::uint64_t>(alignment))) {
      fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(name), ": expected a power of two, got ", alignment);
    }
  }
  if (name != HIPDNN_ATTR_TENSOR_VALUE_EXT) return;
  if (!has(HIPDNN_ATTR_TENSOR_DATA_TYPE)) {
    fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(name), ": set ", attribute_name(HIPDNN_ATTR_TENSOR_DATA_TYPE), " first");
  }
  const auto dtype = static_cast<hipdnnDataType_t>(integer(HIPDNN_ATTR_TENSOR_DATA_TYPE));
  const std::size_t expected = value_bytes(dtype);
  if (value(name).bytes.size() != expected) {
    fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(name), ": expected ", expected, " bytes for ", data_type_name(dtype), ", got ",
         value(name).bytes.size());
  }
}

void TensorDescriptor::get(int name, hipdnnBackendAttributeType_t type, std::int64_t requested, std::int64_t* actual, void* data) const {
  if (name == HIPDNN_ATTR_TENSOR_VALUE_EXT && finalized() && !has(name)) {
    fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(name), " is not set: ask for ", attribute_name(HIPDNN_ATTR_TENSOR_IS_BY_VALUE), " first");
  }
  Descriptor::get(name, type, requested, actual, data);
}

void TensorDescriptor::on_finalize() {
  Tensor tensor;
  tensor.uid = integer(HIPDNN_ATTR_TENSOR_UNIQUE_ID);
  tensor.name = string(HIPDNN_ATTR_TENSOR_NAME_EXT);
  tensor.dtype = static_cast<hipdnnDataType_t>(integer(HIPDNN_ATTR_TENSOR_DATA_TYPE));
  tensor.dims = integers(HIPDNN_ATTR_TENSOR_DIMENSIONS);
  tensor.strides = integers(HIPDNN_ATTR_TENSOR_STRIDES);
  tensor.is_virtual = integer_or(HIPDNN_ATTR_TENSOR_IS_VIRTUAL, 0) != 0;
  tensor.byte_alignment = integer_or(HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT, tensor.byte_alignment);
  if (has(HIPDNN_ATTR_TENSOR_VALUE_EXT)) tensor.value = value(HIPDNN_ATTR_TENSOR_VALUE_EXT).bytes;
  check_shape(tensor);
  check_value(tensor);
  tensor.is_runtime_value = integer_or(HIPDNN_ATTR_TENSOR_IS_RUNTIME_PASS_BY_VALUE_EXT, 0) != 0;
  if (tensor.value && tensor.is_runtime_value) {
    fail(HIPDNN_STATUS_BAD_PARAM, "tensor ", describe(tensor), ": a value is either baked or passed at run time, not both");
  }
  store_integers(HIPDNN_ATTR_TENSOR_IS_BY_VALUE, HIPDNN_TYPE_BOOLEAN, {tensor.value ? 1 : 0});
  // What was not set reads as what is assumed.
  store_integers(HIPDNN_ATTR_TENSOR_IS_VIRTUAL, HIPDNN_TYPE_BOOLEAN, {tensor.is_virtual ? 1 : 0});
  store_integers(HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT, HIPDNN_TYPE_INT64, {tensor.byte_alignment});
  tensor_ = std::move(tensor);
}

}  // namespace hipdnn_port
