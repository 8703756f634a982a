#include "plan/graph_reading.h"

#include <algorithm>
#include <iterator>

namespace hipdnn_rt {
namespace {

void collect(const Executable& executable, std::uint32_t at, std::set<std::uint32_t>& found) {
  if (!found.insert(at).second) return;
  for (const AttributeSpec& attribute : executable.descriptors[at].attributes) {
    for (const std::uint32_t reference : attribute.references) collect(executable, reference, found);
  }
}

}  // namespace

std::int64_t uid_of(const DescriptorSpec& tensor) {
  const auto values = values_of<std::int64_t>(tensor, HIPDNN_ATTR_TENSOR_UNIQUE_ID);
  return values.empty() ? 0 : values.front();
}

hipdnnDataType_t dtype_of(const DescriptorSpec& tensor) {
  const auto values = values_of<std::int32_t>(tensor, HIPDNN_ATTR_TENSOR_DATA_TYPE);
  return values.empty() ? HIPDNN_DATA_UINT8 : static_cast<hipdnnDataType_t>(values.front());
}

std::map<std::int64_t, hipdnnDataType_t> dtypes_of(const Executable& executable) {
  std::map<std::int64_t, hipdnnDataType_t> dtypes;
  for (const DescriptorSpec& spec : executable.descriptors) {
    if (is_tensor(spec)) dtypes[uid_of(spec)] = dtype_of(spec);
  }
  return dtypes;
}

std::vector<std::uint32_t> operations_of(const Executable& executable) {
  const AttributeSpec* operations = find_attribute(executable.descriptors.back(), HIPDNN_ATTR_OPERATIONGRAPH_OPS);
  return operations == nullptr ? std::vector<std::uint32_t>() : operations->references;
}

std::set<std::uint32_t> with_references(const Executable& executable, std::uint32_t at) {
  std::set<std::uint32_t> found;
  collect(executable, at, found);
  return found;
}

std::vector<std::uint32_t> tensors_of(const Executable& executable, std::uint32_t operation) {
  std::vector<std::uint32_t> tensors;
  std::ranges::copy_if(with_references(executable, operation), std::back_inserter(tensors), [&](std::uint32_t at) {
    const DescriptorSpec& spec = executable.descriptors[at];
    return is_tensor(spec) && has_pointer(spec);
  });
  return tensors;
}

std::set<std::int64_t> inputs_of(const Executable& executable) {
  std::set<std::int64_t> uids;
  for (const Operand& operand : executable.operands) {
    if (!operand.is_output) uids.insert(operand.uid);
  }
  return uids;
}

}  // namespace hipdnn_rt
