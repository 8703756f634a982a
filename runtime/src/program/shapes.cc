#include "program/shapes.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>

namespace hipdnn_rt {
namespace {

std::vector<std::int64_t> integers(const AttributeSpec& attribute) {
  std::vector<std::int64_t> values(attribute.bytes.size() / sizeof(std::int64_t));
  std::memcpy(values.data(), attribute.bytes.data(), values.size() * sizeof(std::int64_t));
  return values;
}

/// The shape of a tensor that may have another one; nothing of baked numbers and of what is no tensor.
std::optional<Shape> shape_of(const DescriptorSpec& spec) {
  if (spec.type != HIPDNN_BACKEND_TENSOR_DESCRIPTOR) return std::nullopt;
  Shape shape;
  for (const AttributeSpec& attribute : spec.attributes) {
    switch (attribute.name) {
      case HIPDNN_ATTR_TENSOR_UNIQUE_ID: shape.uid = integers(attribute).at(0); break;
      case HIPDNN_ATTR_TENSOR_DIMENSIONS: shape.dims = integers(attribute); break;
      case HIPDNN_ATTR_TENSOR_STRIDES: shape.strides = integers(attribute); break;
      case HIPDNN_ATTR_TENSOR_VALUE_EXT: return std::nullopt;
      default: break;
    }
  }
  return shape;
}

bool is_shape(const AttributeSpec& attribute) {
  return attribute.name == HIPDNN_ATTR_TENSOR_DIMENSIONS || attribute.name == HIPDNN_ATTR_TENSOR_STRIDES;
}

void append(std::string& text, const void* bytes, std::size_t count) { text.append(static_cast<const char*>(bytes), count); }

template <typename Number>
void append(std::string& text, Number number) {
  append(text, &number, sizeof number);
}

/// Dims of the tensor that an operation refers to by this name; none where it does not.
std::vector<std::int64_t> dims_of(const Executable& executable, const DescriptorSpec& operation, hipdnnBackendAttributeName_t name) {
  const AttributeSpec* reference = find_attribute(operation, name);
  if (reference == nullptr || reference->references.empty()) return {};
  return values_of<std::int64_t>(executable.descriptors.at(reference->references.front()), HIPDNN_ATTR_TENSOR_DIMENSIONS);
}

/// Whether a pointwise operation answers in more than what its operands broadcast to. Nothing but its own result says how large that is.
bool expands(const Executable& executable, const DescriptorSpec& operation) {
  if (operation.type != HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) return false;
  std::vector<std::int64_t> made = dims_of(executable, operation, HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT);
  for (const auto name : {HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT, HIPDNN_ATTR_OPERATION_POINTWISE_IN_2_EXT}) {
    const std::vector<std::int64_t> given = dims_of(executable, operation, name);
    for (std::size_t i = 0; i < std::min(given.size(), made.size()); ++i) {
      if (given[given.size() - 1 - i] > 1) made[made.size() - 1 - i] = 1;  // an operand has it
    }
  }
  return std::ranges::any_of(made, [](std::int64_t dim) { return dim > 1; });
}

/// `text` gets what the descriptor says; of dims only which are one, and of strides how many there are, where `is_open`.
void append(std::string& text, const DescriptorSpec& spec, bool is_open) {
  append(text, static_cast<std::int64_t>(spec.type));
  append(text, spec.attributes.size());
  for (const AttributeSpec& attribute : spec.attributes) {
    append(text, static_cast<std::int64_t>(attribute.name));
    append(text, static_cast<std::int64_t>(attribute.type));
    append(text, attribute.count);
    if (is_open && attribute.name == HIPDNN_ATTR_TENSOR_DIMENSIONS) {
      for (const std::int64_t dim : integers(attribute)) text.push_back(dim == 1 ? '1' : 'n');
    }
    if (is_open && is_shape(attribute)) continue;
    append(text, attribute.bytes.size());
    append(text, attribute.bytes.data(), attribute.bytes.size());
    for (const std::uint32_t reference : attribute.references) append(text, reference);
  }
}

bool fits(const Shape& small, const Shape& large) {
  if (small.uid != large.uid || small.dims.size() != large.dims.size()) return false;
  std::vector<std::size_t> order;  // of dims with more than one element, slowest first
  for (std::size_t d = 0; d < small.dims.size(); ++d) {
    // A stride of zero, which broadcasts, and no elements are not what a library takes.
    if (small.dims[d] < 1 || small.dims[d] > large.dims[d] || small.strides[d] < 1 || large.strides[d] < 1) return false;
    if (small.dims[d] > 1) order.push_back(d);
  }
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t d) { return large.strides[d]; });
  return std::ranges::is_sorted(order, std::ranges::greater_equal(), [&](std::size_t d) { return small.strides[d]; });
}

}  // namespace

Shapes shapes_of(const Executable& executable, const std::set<std::int64_t>& fixed) {
  Shapes shapes;
  const bool is_fixed = std::ranges::any_of(executable.descriptors, [&](const DescriptorSpec& spec) { return expands(executable, spec); });
  for (const DescriptorSpec& spec : executable.descriptors) {
    std::optional<Shape> shape = shape_of(spec);
    const bool is_open = shape && !is_fixed && !fixed.contains(shape->uid);
    append(shapes.structure, spec, is_open);
    // Virtual tensors have no pointer, and follow from operands and operations.
    if (is_open && std::ranges::find(executable.operands, shape->uid, &Operand::uid) != executable.operands.end()) {
      shapes.operands.push_back(std::move(*shape));
    }
  }
  return shapes;
}

bool fits(const std::vector<Shape>& small, const std::vector<Shape>& large) {
  return std::ranges::equal(small, large, [](const Shape& a, const Shape& b) { return a == b || fits(a, b); });
}

std::vector<Shape> overrides_of(const std::vector<Shape>& small, const std::vector<Shape>& large) {
  std::vector<Shape> overrides;
  for (std::size_t i = 0; i < small.size(); ++i) {
    if (small[i] != large[i]) overrides.push_back(small[i]);
  }
  return overrides;
}

}  // namespace hipdnn_rt
