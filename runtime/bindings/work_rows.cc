#include "work_rows.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

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

}  // namespace

nb::list work_rows(const Program& program) {
  nb::list rows;
  for (const Step& step : program.steps()) {
    nb::dict row;
    if (const auto* execute = std::get_if<ExecuteStep>(&step.action)) {
      const Executable& executable = program.executables()[execute->executable];
      nb::list operands, descriptors;
      for (const Operand& operand : executable.operands) operands.append(nb::make_tuple(operand.uid, operand.is_output));
      for (const DescriptorSpec& spec : executable.descriptors) descriptors.append(nb::make_tuple(static_cast<int>(spec.type), attributes_of(spec)));
      row["operands"] = operands;
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
