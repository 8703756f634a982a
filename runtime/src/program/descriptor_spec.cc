#include "program/descriptor_spec.h"

#include <algorithm>

namespace hipdnn_rt {

const AttributeSpec* find_attribute(const DescriptorSpec& spec, hipdnnBackendAttributeName_t name) {
  const auto found = std::ranges::find(spec.attributes, name, &AttributeSpec::name);
  return found == spec.attributes.end() ? nullptr : &*found;
}

}  // namespace hipdnn_rt
