// Look-ups in the descriptor table.
#include "spec.h"

#include <algorithm>

namespace hipdnn_port {

const AttributeSpec* DescriptorSpec::find(int name) const {
  const auto found = std::ranges::find(attributes, name, &AttributeSpec::name);
  return found == attributes.end() ? nullptr : &*found;
}

const AttributeSpec* DescriptorSpec::find(int name, hipdnnBackendAttributeType_t wanted) const {
  const auto found = std::ranges::find_if(attributes, [&](const AttributeSpec& row) { return row.name == name && row.type == wanted; });
  return found == attributes.end() ? nullptr : &*found;
}

const DescriptorSpec* find_spec(hipdnnBackendDescriptorType_t type) {
  for (const auto part : {framework_specs(), forward_operation_specs(), attention_specs(), training_operation_specs()}) {
    const auto found = std::ranges::find(part, type, &DescriptorSpec::type);
    if (found != part.end()) return &*found;
  }
  return nullptr;
}

std::size_t attribute_element_bytes(hipdnnBackendAttributeType_t type) {
  switch (type) {
    case HIPDNN_TYPE_BOOLEAN:
    case HIPDNN_TYPE_CHAR: return 1;
    case HIPDNN_TYPE_DATA_TYPE:
    case HIPDNN_TYPE_FLOAT:
    case HIPDNN_TYPE_HEUR_MODE:
    case HIPDNN_TYPE_INT32:
    case HIPDNN_TYPE_NORM_FWD_PHASE:
    case HIPDNN_TYPE_CONVOLUTION_MODE:
    case HIPDNN_TYPE_POINTWISE_MODE:
    case HIPDNN_TYPE_DIAGONAL_ALIGNMENT_EXT:
    case HIPDNN_TYPE_ATTENTION_IMPLEMENTATION_EXT:
    case HIPDNN_TYPE_REDUCTION_OPERATOR_TYPE:
    case HIPDNN_TYPE_RESAMPLE_MODE:
    case HIPDNN_TYPE_PADDING_MODE:
    case HIPDNN_TYPE_OPERATION_TYPE_EXT: return 4;
    case HIPDNN_TYPE_HANDLE:
    case HIPDNN_TYPE_INT64:
    case HIPDNN_TYPE_DOUBLE:
    case HIPDNN_TYPE_VOID_PTR:
    case HIPDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
    default: return 0;
  }
}

}  // namespace hipdnn_port
