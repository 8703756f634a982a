// Reads what records hold of JSON's own form: descriptors, and the attributes of kernels.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "program/checked.h"
#include "program/record_reader.h"

namespace hipdnn_rt {
namespace {

constexpr std::size_t kDescriptorLimit = 65'536;
constexpr std::size_t kAttributeLimit = 1'024;
constexpr std::size_t kValueLimit = 65'536;
constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kInt32Min = std::numeric_limits<std::int32_t>::min();

/// The largest values that the C enums of the ABI can hold.
constexpr std::int64_t kDescriptorTypeMax = std::bit_ceil(static_cast<unsigned>(HIPDNN_BACKEND_OPERATION_LAYERNORM_BACKWARD_DESCRIPTOR_EXT)) - 1;
constexpr std::int64_t kAttributeNameMax = std::bit_ceil(static_cast<unsigned>(HIPDNN_ATTR_PROFILING_DEVICE_SYNC_EXT)) - 1;
/// The one attribute of operations that is our host library's own.
constexpr std::int64_t kOwnAttribute = HIPDNN_ATTR_SDPA_FWD_SOFT_CAP_MLIR_EXT;

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

void read_integers(const Field& value, const Expressions& table, AttributeSpec& attribute, std::vector<StoredDescriptor::Place>& expressions,
                   std::size_t own_index) {
  const bool is_wide = attribute.type == HIPDNN_TYPE_INT64;
  const std::int64_t least = is_wide ? kInt64Min : kInt32Min, greatest = is_wide ? kInt64Max : kInt32Max;
  const std::size_t count = value.array_size(kValueLimit);
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<std::int64_t> known = value.integer_at(i, least, greatest);  // without the text of a place
    const Expression number = known ? Expression{*known, std::nullopt} : table.reference(value.at(i), least, greatest);
    if (number.entry) expressions.push_back({own_index, i, number});
    if (is_wide) {
      append(attribute.bytes, number.number);
    } else {
      append(attribute.bytes, static_cast<std::int32_t>(number.number));
    }
  }
  attribute.count = static_cast<std::int64_t>(count);
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

void read_attribute(const Field& field, const Expressions& table, std::size_t own_index, StoredDescriptor& descriptor) {
  if (field.array_size(3) != 3) field.fail("[attribute, attribute type, value]");
  AttributeSpec attribute{};
  const std::int64_t name = field.at(0).integer(0, kOwnAttribute);
  if (name > kAttributeNameMax && name != kOwnAttribute) field.at(0).fail("an attribute of an operation");
  attribute.name = static_cast<hipdnnBackendAttributeName_t>(name);
  // A library takes the last of two, and the checks the first.
  if (find_attribute(descriptor.spec, attribute.name) != nullptr) field.at(0).fail("an attribute that the descriptor does not have yet");
  const std::int64_t type = field.at(1).integer(0, kInt32Max);
  const Field value = field.at(2);
  const bool is_known = type == HIPDNN_TYPE_HANDLE || type == HIPDNN_TYPE_BACKEND_DESCRIPTOR || type == HIPDNN_TYPE_BOOLEAN ||
                        type == HIPDNN_TYPE_FLOAT || type == HIPDNN_TYPE_DOUBLE || type == HIPDNN_TYPE_CHAR || is_integer_type(type);
  if (!is_known) field.at(1).fail("an attribute type that a program may use");
  attribute.type = static_cast<hipdnnBackendAttributeType_t>(type);
  switch (attribute.type) {
    case HIPDNN_TYPE_HANDLE:
      attribute.count = 1;
      if (!value.json().is_null()) value.fail("null, for the loader's own handle");
      break;
    case HIPDNN_TYPE_BACKEND_DESCRIPTOR: read_references(value, own_index, attribute); break;
    case HIPDNN_TYPE_BOOLEAN: read_booleans(value, attribute); break;
    case HIPDNN_TYPE_FLOAT:
    case HIPDNN_TYPE_DOUBLE: read_reals(value, attribute); break;
    case HIPDNN_TYPE_CHAR: read_characters(value, attribute); break;
    default: read_integers(value, table, attribute, descriptor.expressions, descriptor.spec.attributes.size()); break;
  }
  if (attribute.count == 0) value.fail("at least one element");
  descriptor.spec.attributes.push_back(std::move(attribute));
}

StoredDescriptor read_descriptor(const Field& field, const Expressions& table, std::size_t own_index) {
  if (field.array_size(2) != 2) field.fail("[descriptor type, attributes]");
  StoredDescriptor descriptor;
  descriptor.spec.type = static_cast<hipdnnBackendDescriptorType_t>(field.at(0).integer(1, kDescriptorTypeMax));
  const Field attributes = field.at(1);
  const std::size_t count = attributes.array_size(kAttributeLimit);
  descriptor.spec.attributes.reserve(count);
  for (std::size_t i = 0; i < count; ++i) read_attribute(attributes.at(i), table, own_index, descriptor);
  return descriptor;
}

/// Appends the text of a value; expressions cut it.
void write_json(const Field& field, const Expressions& table, StoredJson& made) {
  const nlohmann::json& value = field.json();
  if (!value.is_structured()) {
    made.rest += value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  } else if (Expressions::is_reference(value)) {
    made.expressions.emplace_back(std::move(made.rest), table.reference(field, kInt64Min, kInt64Max));
    made.rest.clear();
  } else if (value.is_array()) {
    made.rest += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) made.rest += ',';
      write_json(field.at(i), table, made);
    }
    made.rest += ']';
  } else {
    made.rest += '{';
    bool is_first = true;
    for (const auto& [key, item] : value.items()) {
      if (!std::exchange(is_first, false)) made.rest += ',';
      made.rest += nlohmann::json(key).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + ':';
      write_json(field[key], table, made);
    }
    made.rest += '}';
  }
}

}  // namespace

std::vector<StoredDescriptor> read_descriptors(const Field& field, const Expressions& table) {
  const std::size_t count = field.array_size(kDescriptorLimit);
  if (count == 0) field.fail("at least one descriptor");
  std::vector<StoredDescriptor> descriptors;
  descriptors.reserve(count);
  for (std::size_t i = 0; i < count; ++i) descriptors.push_back(read_descriptor(field.at(i), table, i));
  return descriptors;
}

StoredJson read_json(const Field& field, const Expressions& table) {
  if (!field.json().is_object()) field.fail("an object");
  StoredJson made;
  write_json(field, table, made);
  return made;
}

}  // namespace hipdnn_rt
