#include "program/descriptor_spec.h"

#include <algorithm>
#include <limits>

namespace hipdnn_rt {

const AttributeSpec* find_attribute(const DescriptorSpec& spec, hipdnnBackendAttributeName_t name) {
  const auto found = std::ranges::find(spec.attributes, name, &AttributeSpec::name);
  return found == spec.attributes.end() ? nullptr : &*found;
}

std::vector<std::int64_t> integers_of(const AttributeSpec& attribute) {
  std::vector<std::int64_t> numbers;
  const std::size_t width = attribute.bytes.size() / static_cast<std::size_t>(attribute.count);
  for (std::size_t i = 0; i < attribute.bytes.size(); i += width) {
    std::int64_t wide = 0;
    std::int32_t narrow = 0;
    if (width == sizeof wide) std::memcpy(&wide, &attribute.bytes[i], sizeof wide);
    if (width == sizeof narrow) std::memcpy(&narrow, &attribute.bytes[i], sizeof narrow);
    numbers.push_back(width == sizeof wide ? wide : narrow);
  }
  return numbers;
}

bool set_integer(AttributeSpec& attribute, std::size_t index, std::int64_t value) {
  if (attribute.type == HIPDNN_TYPE_INT64) {
    std::memcpy(&attribute.bytes[index * sizeof value], &value, sizeof value);
    return true;
  }
  const auto narrow = static_cast<std::int32_t>(value);
  if (narrow != value) return false;
  std::memcpy(&attribute.bytes[index * sizeof narrow], &narrow, sizeof narrow);
  return true;
}

}  // namespace hipdnn_rt
