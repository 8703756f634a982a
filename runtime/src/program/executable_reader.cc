// Reads one member of `executables`: the descriptor list, and the operands checked against it.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <set>

#include "device/error.h"
#include "program/checked.h"
#include "program/json_field.h"
#include "program/program.h"

namespace hipdnn_rt {
namespace {

constexpr std::size_t kDescriptorLimit = 65'536;
constexpr std::size_t kAttributeLimit = 1'024;
constexpr std::size_t kValueLimit = 65'536;
constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kInt64Min = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kInt32Min = std::numeric_limits<std::int32_t>::min();

/// The ABI's default for a tensor's pointer, in bytes.
constexpr std::uint64_t kDefaultAlignment = 16;
constexpr std::int64_t kAlignmentMax = 4'096;

/// The largest values that the C enums of the ABI can hold.
constexpr std::int64_t kDescriptorTypeMax = std::bit_ceil(static_cast<unsigned>(HIPDNN_BACKEND_OPERATION_LAYERNORM_BACKWARD_DESCRIPTOR_EXT)) - 1;
constexpr std::int64_t kAttributeNameMax = std::bit_ceil(static_cast<unsigned>(HIPDNN_ATTR_PROFILING_DEVICE_SYNC_EXT)) - 1;

/// Attributes under which an operation names a tensor that it writes. A tensor so named is an output whatever the program calls it:
/// an operand declared `in` may be read-only memory.
constexpr std::array kResultAttributes{
    HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
    HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
    HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
    HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_Y_EXT,
    HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_Y_EXT,
    HIPDNN_ATTR_OPERATION_BATCHNORM_BACKWARD_DX_EXT,
    HIPDNN_ATTR_OPERATION_BATCHNORM_BACKWARD_DSCALE_EXT,
    HIPDNN_ATTR_OPERATION_BATCHNORM_BACKWARD_DBIAS_EXT,
    HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT,
    HIPDNN_ATTR_OPERATION_RMSNORM_Y_EXT,
    HIPDNN_ATTR_OPERATION_RMSNORM_INV_RMS_EXT,
    HIPDNN_ATTR_OPERATION_MATMUL_CDESC,
    HIPDNN_ATTR_OPERATION_SDPA_FWD_ODESC,
    HIPDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC,
    HIPDNN_ATTR_OPERATION_SDPA_FWD_MAX_EXT,
    HIPDNN_ATTR_OPERATION_SDPA_FWD_SUM_EXP_EXT,
    HIPDNN_ATTR_OPERATION_SDPA_FWD_AMAX_S_EXT,
    HIPDNN_ATTR_OPERATION_SDPA_FWD_AMAX_O_EXT,
    HIPDNN_ATTR_OPERATION_LAYERNORM_Y_EXT,
    HIPDNN_ATTR_OPERATION_LAYERNORM_MEAN_EXT,
    HIPDNN_ATTR_OPERATION_LAYERNORM_INV_VARIANCE_EXT,
    HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC,
    HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC,
    HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC,
    HIPDNN_ATTR_OPERATION_BATCHNORM_Y_EXT,
    HIPDNN_ATTR_OPERATION_BATCHNORM_MEAN_EXT,
    HIPDNN_ATTR_OPERATION_BATCHNORM_INV_VARIANCE_EXT,
    HIPDNN_ATTR_OPERATION_BATCHNORM_NEXT_RUNNING_MEAN_EXT,
    HIPDNN_ATTR_OPERATION_BATCHNORM_NEXT_RUNNING_VARIANCE_EXT,
    HIPDNN_ATTR_OPERATION_CUSTOM_OP_OUTPUTS_EXT,
    HIPDNN_ATTR_OPERATION_SDPA_BWD_DQ_EXT,
    HIPDNN_ATTR_OPERATION_SDPA_BWD_DK_EXT,
    HIPDNN_ATTR_OPERATION_SDPA_BWD_DV_EXT,
    HIPDNN_ATTR_OPERATION_SDPA_BWD_DBIAS_EXT,
    HIPDNN_ATTR_OPERATION_REDUCTION_YDESC,
    HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC,
    HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC,
    HIPDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC,
    HIPDNN_ATTR_OPERATION_RMSNORM_BACKWARD_DX_EXT,
    HIPDNN_ATTR_OPERATION_RMSNORM_BACKWARD_DSCALE_EXT,
    HIPDNN_ATTR_OPERATION_RMSNORM_BACKWARD_DBIAS_EXT,
    HIPDNN_ATTR_OPERATION_LAYERNORM_BACKWARD_DX_EXT,
    HIPDNN_ATTR_OPERATION_LAYERNORM_BACKWARD_DSCALE_EXT,
    HIPDNN_ATTR_OPERATION_LAYERNORM_BACKWARD_DBIAS_EXT,
    HIPDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC,
};

template <typename T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto raw = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

std::vector<std::byte> decode_hex(const Field& field) {
  const std::string& text = field.text();
  const auto digit = [&](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    field.fail("pairs of hexadecimal digits");
  };
  if (text.size() % 2 != 0) field.fail("pairs of hexadecimal digits");
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) bytes.push_back(static_cast<std::byte>(digit(text[i]) * 16 + digit(text[i + 1])));
  return bytes;
}

void read_characters(const Field& value, AttributeSpec& attribute) {
  if (value.json().is_object()) {
    attribute.bytes = decode_hex(value["hex"]);
  } else {
    for (const char c : value.text()) attribute.bytes.push_back(static_cast<std::byte>(c));
  }
  attribute.count = static_cast<std::int64_t>(attribute.bytes.size());
}

void read_reals(const Field& value, AttributeSpec& attribute) {
  const std::size_t count = value.array_size(kValueLimit);
  for (std::size_t i = 0; i < count; ++i) {
    const double number = value.at(i).real();
    if (attribute.type == HIPDNN_TYPE_FLOAT) {
      append(attribute.bytes, static_cast<float>(number));
    } else {
      append(attribute.bytes, number);
    }
  }
  attribute.count = static_cast<std::int64_t>(count);
}

void read_integers(const Field& value, AttributeSpec& attribute) {
  const bool is_wide = attribute.type == HIPDNN_TYPE_INT64;
  const auto numbers = value.integers(kValueLimit, is_wide ? kInt64Min : kInt32Min, is_wide ? kInt64Max : kInt32Max);
  for (const std::int64_t number : numbers) {
    if (is_wide) {
      append(attribute.bytes, number);
    } else {
      append(attribute.bytes, static_cast<std::int32_t>(number));
    }
  }
  attribute.count = static_cast<std::int64_t>(numbers.size());
}

void read_references(const Field& value, std::size_t own_index, AttributeSpec& attribute) {
  for (const std::int64_t index : value.integers(kValueLimit, 0, static_cast<std::int64_t>(own_index) - 1)) {
    attribute.references.push_back(static_cast<std::uint32_t>(index));
  }
  attribute.count = static_cast<std::int64_t>(attribute.references.size());
}

void read_booleans(const Field& value, AttributeSpec& attribute) {
  const std::size_t count = value.array_size(kValueLimit);
  for (std::size_t i = 0; i < count; ++i) append(attribute.bytes, static_cast<std::uint8_t>(value.at(i).boolean()));
  attribute.count = static_cast<std::int64_t>(count);
}

/// Attribute types a program may use, but for those with a reader of their own: all of them are one integer per element.
/// Pointers and structures have no place in a file.
bool is_integer_type(std::int64_t type) {
  switch (type) {
    case HIPDNN_TYPE_DATA_TYPE:
    case HIPDNN_TYPE_INT64:
    case HIPDNN_TYPE_INT32:
    case HIPDNN_TYPE_NAN_PROPOGATION:
    case HIPDNN_TYPE_NORM_FWD_PHASE:
    case HIPDNN_TYPE_RNG_DISTRIBUTION:
    case HIPDNN_TYPE_TENSOR_REORDERING_MODE:
    case HIPDNN_TYPE_SIGNAL_MODE:
    case HIPDNN_TYPE_CONVOLUTION_MODE:
    case HIPDNN_TYPE_POINTWISE_MODE:
    case HIPDNN_TYPE_DIAGONAL_ALIGNMENT_EXT:
    case HIPDNN_TYPE_ATTENTION_IMPLEMENTATION_EXT:
    case HIPDNN_TYPE_REDUCTION_OPERATOR_TYPE:
    case HIPDNN_TYPE_RESAMPLE_MODE:
    case HIPDNN_TYPE_PADDING_MODE:
    case HIPDNN_TYPE_MOE_GROUPED_MATMUL_MODE:
      return true;
    default:
      return false;
  }
}

AttributeSpec read_attribute(const Field& field, std::size_t own_index) {
  if (field.array_size(3) != 3) field.fail("[attribute, attribute type, value]");
  AttributeSpec attribute{};
  attribute.name = static_cast<hipdnnBackendAttributeName_t>(field.at(0).integer(0, kAttributeNameMax));
  const std::int64_t type = field.at(1).integer(0, kInt32Max);
  const Field value = field.at(2);
  if (type == HIPDNN_TYPE_HANDLE) {
    attribute.type = HIPDNN_TYPE_HANDLE;
    attribute.count = 1;
    if (!value.json().is_null()) value.fail("null, for the loader's own handle");
    return attribute;
  }
  const bool is_known = type == HIPDNN_TYPE_BACKEND_DESCRIPTOR || type == HIPDNN_TYPE_BOOLEAN || type == HIPDNN_TYPE_FLOAT ||
                        type == HIPDNN_TYPE_DOUBLE || type == HIPDNN_TYPE_CHAR || is_integer_type(type);
  if (!is_known) field.at(1).fail("an attribute type that a program may use");
  attribute.type = static_cast<hipdnnBackendAttributeType_t>(type);
  switch (attribute.type) {
    case HIPDNN_TYPE_BACKEND_DESCRIPTOR: read_references(value, own_index, attribute); break;
    case HIPDNN_TYPE_BOOLEAN: read_booleans(value, attribute); break;
    case HIPDNN_TYPE_FLOAT:
    case HIPDNN_TYPE_DOUBLE: read_reals(value, attribute); break;
    case HIPDNN_TYPE_CHAR: read_characters(value, attribute); break;
    default: read_integers(value, attribute); break;
  }
  if (attribute.count == 0) value.fail("at least one element");
  return attribute;
}

DescriptorSpec read_descriptor(const Field& field, std::size_t own_index) {
  if (field.array_size(2) != 2) field.fail("[descriptor type, attributes]");
  DescriptorSpec spec{};
  spec.type = static_cast<hipdnnBackendDescriptorType_t>(field.at(0).integer(1, kDescriptorTypeMax));
  const Field attributes = field.at(1);
  const std::size_t count = attributes.array_size(kAttributeLimit);
  spec.attributes.reserve(count);
  for (std::size_t i = 0; i < count; ++i) spec.attributes.push_back(read_attribute(attributes.at(i), own_index));
  return spec;
}

/// What the loader must know about a tensor descriptor.
struct TensorFacts {
  std::int64_t uid = 0;
  bool needs_pointer = true;
  bool is_written = false;
  std::uint64_t extent_bytes = 0;
  std::uint64_t alignment = kDefaultAlignment;
};

/// The integers of an attribute; throws where it is missing or of another type.
std::vector<std::int64_t> integers_of(const DescriptorSpec& spec, hipdnnBackendAttributeName_t name, hipdnnBackendAttributeType_t type,
                                      const Field& field) {
  const AttributeSpec* attribute = find_attribute(spec, name);
  if (attribute == nullptr || attribute->type != type) {
    throw ProgramError(field.path() + ": tensor lacks attribute " + std::to_string(name) + " of type " + std::to_string(type));
  }
  std::vector<std::int64_t> numbers;
  const std::size_t width = attribute->bytes.size() / static_cast<std::size_t>(attribute->count);
  for (std::size_t i = 0; i < attribute->bytes.size(); i += width) {
    std::int64_t wide = 0;
    std::int32_t narrow = 0;
    if (width == sizeof wide) std::memcpy(&wide, &attribute->bytes[i], sizeof wide);
    if (width == sizeof narrow) std::memcpy(&narrow, &attribute->bytes[i], sizeof narrow);
    numbers.push_back(width == sizeof wide ? wide : narrow);
  }
  return numbers;
}

/// Bytes from the first element to the end of the last: 1 + sum((dim - 1) * stride) elements.
std::uint64_t extent_of(const DescriptorSpec& spec, const Field& field) {
  const auto dims = integers_of(spec, HIPDNN_ATTR_TENSOR_DIMENSIONS, HIPDNN_TYPE_INT64, field);
  const auto strides = integers_of(spec, HIPDNN_ATTR_TENSOR_STRIDES, HIPDNN_TYPE_INT64, field);
  const auto dtype = integers_of(spec, HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_TYPE_DATA_TYPE, field);
  const std::optional<std::uint64_t> bits = element_bits(dtype.front());
  if (!bits) throw ProgramError(field.path() + ": unknown data type " + std::to_string(dtype.front()));
  if (dims.size() != strides.size()) throw ProgramError(field.path() + ": tensor has " + std::to_string(dims.size()) + " dims but " +
                                                        std::to_string(strides.size()) + " strides");
  std::optional<std::uint64_t> elements = 1;
  for (std::size_t i = 0; elements && i < dims.size(); ++i) {
    if (dims[i] < 1 || strides[i] < 0) throw ProgramError(field.path() + ": tensor dims must be positive and strides not negative");
    const auto step = checked_multiply(static_cast<std::uint64_t>(dims[i] - 1), static_cast<std::uint64_t>(strides[i]));
    elements = step ? checked_add(*elements, *step) : std::nullopt;
  }
  const auto total_bits = elements ? checked_multiply(*elements, *bits) : std::nullopt;
  if (!total_bits) throw ProgramError(field.path() + ": tensor size overflows");
  return *total_bits / 8 + (*total_bits % 8 != 0 ? 1 : 0);
}

TensorFacts read_tensor(const DescriptorSpec& spec, const Field& field) {
  TensorFacts facts;
  facts.uid = integers_of(spec, HIPDNN_ATTR_TENSOR_UNIQUE_ID, HIPDNN_TYPE_INT64, field).front();
  facts.extent_bytes = extent_of(spec, field);
  if (find_attribute(spec, HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT) != nullptr) {
    const std::int64_t bytes = integers_of(spec, HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT, HIPDNN_TYPE_INT64, field).front();
    if (bytes < 1 || bytes > kAlignmentMax) throw ProgramError(field.path() + ": byte alignment " + std::to_string(bytes) + " is out of range");
    facts.alignment = static_cast<std::uint64_t>(bytes);
  }
  const AttributeSpec* is_virtual = find_attribute(spec, HIPDNN_ATTR_TENSOR_IS_VIRTUAL);
  const bool is_baked = find_attribute(spec, HIPDNN_ATTR_TENSOR_VALUE_EXT) != nullptr;
  facts.needs_pointer = !is_baked && (is_virtual == nullptr || is_virtual->bytes.front() == std::byte{0});
  return facts;
}

void mark_results(const DescriptorSpec& spec, std::vector<std::optional<TensorFacts>>& tensors) {
  for (const AttributeSpec& attribute : spec.attributes) {
    if (std::find(kResultAttributes.begin(), kResultAttributes.end(), attribute.name) == kResultAttributes.end()) continue;
    for (const std::uint32_t index : attribute.references) {
      if (tensors[index]) tensors[index]->is_written = true;
    }
  }
}

/// Facts about the tensors among the descriptors, and the checks that span descriptors.
std::vector<TensorFacts> collect_tensors(const Executable& executable, const Field& descriptors) {
  std::vector<std::optional<TensorFacts>> by_descriptor;
  std::int64_t next_uid = 1;
  for (std::size_t i = 0; i < executable.descriptors.size(); ++i) {
    const DescriptorSpec& spec = executable.descriptors[i];
    const bool is_last = i + 1 == executable.descriptors.size();
    if (is_last != (spec.type == HIPDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)) {
      throw ProgramError(descriptors.at(i).path() + ": the operation graph must be the last descriptor, and only the last");
    }
    std::optional<TensorFacts> facts;
    if (spec.type == HIPDNN_BACKEND_TENSOR_DESCRIPTOR) {
      facts = read_tensor(spec, descriptors.at(i));
      if (facts->uid != next_uid) {
        throw ProgramError(descriptors.at(i).path() + ": expected tensor uid " + std::to_string(next_uid) + ", got " +
                           std::to_string(facts->uid));
      }
      ++next_uid;
    }
    by_descriptor.push_back(facts);
    mark_results(spec, by_descriptor);
  }
  std::vector<TensorFacts> tensors;
  for (const auto& facts : by_descriptor) {
    if (facts) tensors.push_back(*facts);
  }
  return tensors;
}

void read_operands(const Field& field, const std::vector<TensorFacts>& tensors, Executable& executable) {
  const std::size_t count = field.array_size(kDescriptorLimit);
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < count; ++i) {
    const Field entry = field.at(i);
    const std::int64_t uid = entry["uid"].integer(1, static_cast<std::int64_t>(tensors.size()));
    const TensorFacts& facts = tensors[static_cast<std::size_t>(uid - 1)];
    if (!facts.needs_pointer) entry["uid"].fail("a tensor that is neither virtual nor a baked value");
    if (!seen.insert(uid).second) entry["uid"].fail("each tensor once");
    const std::string& role = entry["role"].text();
    if (role != "in" && role != "out") entry["role"].fail("\"in\" or \"out\"");
    if ((role == "out") != facts.is_written) entry["role"].fail(facts.is_written ? "\"out\": an operation writes it" : "\"in\": no operation writes it");
    executable.operands.push_back({uid, facts.is_written, facts.extent_bytes, facts.alignment});
  }
  for (const TensorFacts& facts : tensors) {
    if (facts.needs_pointer && !seen.contains(facts.uid)) {
      throw ProgramError(field.path() + ": tensor " + std::to_string(facts.uid) + " needs a pointer and is not listed");
    }
  }
}

}  // namespace

std::optional<std::uint64_t> element_bits(std::int64_t dtype) {
  switch (dtype) {
    case HIPDNN_DATA_DOUBLE:
    case HIPDNN_DATA_INT64: return 64;
    case HIPDNN_DATA_FLOAT:
    case HIPDNN_DATA_INT32: return 32;
    case HIPDNN_DATA_HALF:
    case HIPDNN_DATA_BFLOAT16: return 16;
    case HIPDNN_DATA_INT8:
    case HIPDNN_DATA_UINT8:
    case HIPDNN_DATA_BOOLEAN:
    case HIPDNN_DATA_FP8_E4M3:
    case HIPDNN_DATA_FP8_E5M2:
    case HIPDNN_DATA_FP8_E8M0:
    case HIPDNN_DATA_FP8_E4M3_FNUZ:
    case HIPDNN_DATA_FP8_E5M2_FNUZ: return 8;
    case HIPDNN_DATA_FP6_E2M3_EXT:
    case HIPDNN_DATA_FP6_E3M2_EXT: return 6;
    case HIPDNN_DATA_FP4_E2M1:
    case HIPDNN_DATA_INT4: return 4;
    default: return std::nullopt;
  }
}

Executable parse_executable(const Field& field) {
  Executable executable;
  executable.name = field["name"].text();
  if (const auto summary = field.find("summary")) executable.summary = summary->text();
  const Field descriptors = field["descriptors"];
  const std::size_t count = descriptors.array_size(kDescriptorLimit);
  if (count == 0) descriptors.fail("at least one descriptor");
  executable.descriptors.reserve(count);
  for (std::size_t i = 0; i < count; ++i) executable.descriptors.push_back(read_descriptor(descriptors.at(i), i));
  read_operands(field["operands"], collect_tensors(executable, descriptors), executable);
  executable.canonical = descriptors.json().dump();
  return executable;
}

}  // namespace hipdnn_rt
