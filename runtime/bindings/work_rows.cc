#include "work_rows.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>

namespace nb = nanobind;

namespace hipdnn_rt::bindings {
namespace {

bool holds_integers(const AttributeSpec& attribute) {
  const bool is_other = attribute.type == HIPDNN_TYPE_HANDLE || attribute.type == HIPDNN_TYPE_CHAR || attribute.type == HIPDNN_TYPE_FLOAT ||
                        attribute.type == HIPDNN_TYPE_DOUBLE || attribute.type == HIPDNN_TYPE_BOOLEAN;
  return !is_other && attribute.count > 0 && !attribute.bytes.empty();
}

/// By attribute, as far as Python counts with them: the dims of tensors, what operations refer to, and so on.
nb::dict attributes_of(const DescriptorSpec& spec) {
  nb::dict attributes;
  for (const AttributeSpec& attribute : spec.attributes) {
    if (!attribute.references.empty()) {
      attributes[nb::int_(static_cast<int>(attribute.name))] = nb::cast(attribute.references);
    } else if (holds_integers(attribute)) {
      attributes[nb::int_(static_cast<int>(attribute.name))] = nb::cast(integers_of(attribute));
    }
  }
  return attributes;
}

/// Bytes of a tensor's elements; what a stride of 0 repeats counts once.
std::uint64_t bytes_of(const DescriptorSpec& tensor) {
  const std::vector<std::int64_t> dims = integers_of(*find_attribute(tensor, HIPDNN_ATTR_TENSOR_DIMENSIONS));
  const std::vector<std::int64_t> strides = integers_of(*find_attribute(tensor, HIPDNN_ATTR_TENSOR_STRIDES));
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) elements *= strides[i] == 0 ? 1 : static_cast<std::uint64_t>(dims[i]);
  const std::vector<std::int64_t> dtype = integers_of(*find_attribute(tensor, HIPDNN_ATTR_TENSOR_DATA_TYPE));
  return (elements * element_bits(dtype.front()).value_or(0) + 7) / 8;
}

nb::list operand_rows(const Executable& executable) {
  std::map<std::int64_t, std::uint64_t> bytes;
  for (const DescriptorSpec& spec : executable.descriptors) {
    if (spec.type != HIPDNN_BACKEND_TENSOR_DESCRIPTOR) continue;
    bytes[integers_of(*find_attribute(spec, HIPDNN_ATTR_TENSOR_UNIQUE_ID)).front()] = bytes_of(spec);
  }
  nb::list rows;
  for (const Operand& operand : executable.operands) rows.append(nb::make_tuple(operand.is_output, bytes.at(operand.uid)));
  return rows;
}

}  // namespace

nb::list work_rows(const Program& program) {
  nb::list rows;
  for (const Step& step : program.steps()) {
    nb::dict row;
    if (const auto* execute = std::get_if<ExecuteStep>(&step.action)) {
      const Executable& executable = program.executables()[execute->executable];
      nb::list descriptors;
      for (const DescriptorSpec& spec : executable.descriptors) descriptors.append(nb::make_tuple(static_cast<int>(spec.type), attributes_of(spec)));
      row["operands"] = operand_rows(executable);
      row["descriptors"] = descriptors;
    } else if (const auto* launch = std::get_if<LaunchStep>(&step.action)) {
      row["description"] = program.kernels()[launch->kernel].description();
    } else {
      row["bytes"] = std::get<CopyStep>(step.action).bytes;
    }
    rows.append(row);
  }
  return rows;
}

}  // namespace hipdnn_rt::bindings
