// hipDNN backend descriptors as a program has them: data, without a library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "hipdnn_backend.h"

namespace hipdnn_rt {

/// One `set` call of a program: raw bytes as the ABI takes them, or references to descriptors earlier in the list.
struct AttributeSpec {
  hipdnnBackendAttributeName_t name;
  hipdnnBackendAttributeType_t type;
  std::int64_t count = 0;
  std::vector<std::byte> bytes;
  /// For BACKEND_DESCRIPTOR only.
  std::vector<std::uint32_t> references;
};

/// One descriptor of a program: its type and its attributes, in the order they are set.
struct DescriptorSpec {
  hipdnnBackendDescriptorType_t type;
  std::vector<AttributeSpec> attributes;
};

/// Null where the descriptor has no such attribute.
const AttributeSpec* find_attribute(const DescriptorSpec& spec, hipdnnBackendAttributeName_t name);

/// The elements of an attribute of integers of 32 or 64 bits.
std::vector<std::int64_t> integers_of(const AttributeSpec& attribute);
/// Set one of them; false where it does not fit.
bool set_integer(AttributeSpec& attribute, std::size_t index, std::int64_t value);

/// The values of an attribute of this type, as many as it has; none where the descriptor does not have it.
template <typename T>
std::vector<T> values_of(const DescriptorSpec& spec, hipdnnBackendAttributeName_t name) {
  const AttributeSpec* attribute = find_attribute(spec, name);
  std::vector<T> values(attribute == nullptr ? 0 : attribute->bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), attribute->bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace hipdnn_rt
