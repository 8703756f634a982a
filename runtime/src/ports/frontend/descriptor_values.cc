// Attribute values as C++ values, for the descriptors that compute with them.
#include <cstring>
#include <utility>

#include "descriptor.h"
#include "names.h"
#include "status.h"

namespace hipdnn_port {
namespace {

template <class Element, class Widened>
std::vector<Widened> widen(const Value& value) {
  std::vector<Widened> widened;
  widened.reserve(static_cast<std::size_t>(value.count));
  for (std::size_t offset = 0; offset < value.bytes.size(); offset += sizeof(Element)) {
    Element element;
    std::memcpy(&element, value.bytes.data() + offset, sizeof element);
    widened.push_back(static_cast<Widened>(element));
  }
  return widened;
}

}  // namespace

std::vector<std::int64_t> Descriptor::integers(int name) const {
  const Value& held = value(name);
  if (held.type == HIPDNN_TYPE_BOOLEAN) {
    std::vector<std::int64_t> flags = widen<std::uint8_t, std::int64_t>(held);
    for (std::int64_t& flag : flags) flag = flag != 0 ? 1 : 0;
    return flags;
  }
  if (held.type == HIPDNN_TYPE_INT64) return widen<std::int64_t, std::int64_t>(held);
  if (held.type == HIPDNN_TYPE_INT32 || is_enumeration(held.type)) return widen<std::int32_t, std::int64_t>(held);
  fail(HIPDNN_STATUS_INTERNAL_ERROR, attribute_name(name), " holds no integers");
}

std::vector<double> Descriptor::reals(int name) const {
  const Value& held = value(name);
  return held.type == HIPDNN_TYPE_FLOAT ? widen<float, double>(held) : widen<double, double>(held);
}

std::string Descriptor::string(int name) const {
  if (!has(name)) return {};
  const Value& held = value(name);
  return {reinterpret_cast<const char*>(held.bytes.data()), held.bytes.size()};
}

std::vector<void*> Descriptor::pointers(int name) const { return widen<void*, void*>(value(name)); }

void Descriptor::store_integers(int name, hipdnnBackendAttributeType_t type, const std::vector<std::int64_t>& elements) {
  const std::size_t element_size = attribute_element_bytes(type);
  Value stored{.type = type, .count = static_cast<std::int64_t>(elements.size()), .bytes = {}, .descriptors = {}};
  stored.bytes.resize(elements.size() * element_size);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    std::memcpy(stored.bytes.data() + i * element_size, &elements[i], element_size);  // little-endian: the low bytes
  }
  values_.insert_or_assign(name, std::move(stored));
}

void Descriptor::store_string(int name, const std::string& characters) {
  Value stored{.type = HIPDNN_TYPE_CHAR, .count = static_cast<std::int64_t>(characters.size()), .bytes = {}, .descriptors = {}};
  stored.bytes.resize(characters.size());
  std::memcpy(stored.bytes.data(), characters.data(), characters.size());
  values_.insert_or_assign(name, std::move(stored));
}

void Descriptor::store_float(int name, float element) {
  Value stored{.type = HIPDNN_TYPE_FLOAT, .count = 1, .bytes = std::vector<std::byte>(sizeof element), .descriptors = {}};
  std::memcpy(stored.bytes.data(), &element, sizeof element);
  values_.insert_or_assign(name, std::move(stored));
}

void Descriptor::store_descriptors(int name, std::vector<std::shared_ptr<Descriptor>> descriptors) {
  Value stored{.type = HIPDNN_TYPE_BACKEND_DESCRIPTOR, .count = static_cast<std::int64_t>(descriptors.size()), .bytes = {}, .descriptors = {}};
  stored.descriptors = std::move(descriptors);
  values_.insert_or_assign(name, std::move(stored));
}

AttributeValue attribute_value(const Descriptor& descriptor, int name) {
  switch (descriptor.value(name).type) {
    case HIPDNN_TYPE_FLOAT:
    case HIPDNN_TYPE_DOUBLE: return descriptor.reals(name);
    case HIPDNN_TYPE_CHAR: return descriptor.string(name);
    default: return descriptor.integers(name);
  }
}

}  // namespace hipdnn_port
