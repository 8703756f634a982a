// Checks a hipDNN graph: what its descriptors must say for the loader, and the operands against them. Of operations nothing is known here.
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>

#include "program/checked.h"
#include "program/checks.h"

namespace hipdnn_rt {
namespace {

/// The ABI's default for a tensor's pointer, in bytes.
constexpr std::uint64_t kDefaultAlignment = 16;
constexpr std::int64_t kAlignmentMax = 4'096;

/// What the loader must know about a tensor descriptor.
struct TensorFacts {
  std::int64_t uid = 0;
  bool needs_pointer = true;
  std::uint64_t extent_bytes = 0;
  std::uint64_t alignment = kDefaultAlignment;
};

/// The integers of an attribute; throws where it is missing or of another type.
std::vector<std::int64_t> integers_of(const DescriptorSpec& spec, hipdnnBackendAttributeName_t name, hipdnnBackendAttributeType_t type,
                                      const Place& place) {
  const AttributeSpec* attribute = find_attribute(spec, name);
  if (attribute == nullptr || attribute->type != type) {
    place.fail("tensor lacks attribute " + std::to_string(name) + " of type " + std::to_string(type));
  }
  return integers_of(*attribute);
}

/// Bytes from the first element to the end of the last: 1 + sum((dim - 1) * stride) elements.
std::uint64_t extent_of(const DescriptorSpec& spec, const Place& place) {
  const auto dims = integers_of(spec, HIPDNN_ATTR_TENSOR_DIMENSIONS, HIPDNN_TYPE_INT64, place);
  const auto strides = integers_of(spec, HIPDNN_ATTR_TENSOR_STRIDES, HIPDNN_TYPE_INT64, place);
  const auto dtype = integers_of(spec, HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_TYPE_DATA_TYPE, place);
  const std::optional<std::uint64_t> bits = element_bits(dtype.front());
  if (!bits) place.fail("unknown data type " + std::to_string(dtype.front()));
  if (dims.size() != strides.size()) {
    place.fail("tensor has " + std::to_string(dims.size()) + " dims but " + std::to_string(strides.size()) + " strides");
  }
  std::optional<std::uint64_t> elements = 1;
  std::optional<std::uint64_t> count = 1;
  for (std::size_t i = 0; elements && i < dims.size(); ++i) {
    if (dims[i] < 1 || strides[i] < 0) place.fail("tensor dims must be positive and strides not negative");
    count = count ? checked_multiply(*count, static_cast<std::uint64_t>(dims[i])) : std::nullopt;
    const auto step = checked_multiply(static_cast<std::uint64_t>(dims[i] - 1), static_cast<std::uint64_t>(strides[i]));
    elements = step ? checked_add(*elements, *step) : std::nullopt;
  }
  const auto total_bits = elements ? checked_multiply(*elements, *bits) : std::nullopt;
  if (!total_bits) place.fail("tensor size overflows");
  if (!count || *count > kElementsLimit) place.fail("tensor has more than 2^40 elements");
  return *total_bits / 8 + (*total_bits % 8 != 0 ? 1 : 0);
}

/// Bytes of one element, or of the group of narrow ones that share a byte.
std::uint64_t element_bytes(const DescriptorSpec& spec, const Place& place) {
  const auto dtype = integers_of(spec, HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_TYPE_DATA_TYPE, place);
  return std::max<std::uint64_t>(element_bits(dtype.front()).value_or(0) / 8, 1);
}

TensorFacts read_tensor(const DescriptorSpec& spec, const Place& place) {
  TensorFacts facts;
  facts.uid = integers_of(spec, HIPDNN_ATTR_TENSOR_UNIQUE_ID, HIPDNN_TYPE_INT64, place).front();
  facts.extent_bytes = extent_of(spec, place);
  if (find_attribute(spec, HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT) != nullptr) {
    const std::int64_t bytes = integers_of(spec, HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT, HIPDNN_TYPE_INT64, place).front();
    if (bytes < 1 || bytes > kAlignmentMax) place.fail("byte alignment " + std::to_string(bytes) + " is out of range");
    // Code reads whole elements, whatever a file says.
    facts.alignment = std::max(static_cast<std::uint64_t>(bytes), element_bytes(spec, place));
  }
  const AttributeSpec* is_virtual = find_attribute(spec, HIPDNN_ATTR_TENSOR_IS_VIRTUAL);
  const bool is_baked = find_attribute(spec, HIPDNN_ATTR_TENSOR_VALUE_EXT) != nullptr;
  facts.needs_pointer = !is_baked && (is_virtual == nullptr || is_virtual->bytes.empty() || is_virtual->bytes.front() == std::byte{0});
  return facts;
}

/// Facts about the tensors among the descriptors, and the checks that span descriptors.
std::vector<TensorFacts> collect_tensors(std::span<const DescriptorSpec> descriptors, const Place& place) {
  std::vector<TensorFacts> tensors;
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    const Place at(place, i);
    const bool is_last = i + 1 == descriptors.size();
    if (is_last != (descriptors[i].type == HIPDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)) {
      at.fail("the operation graph must be the last descriptor, and only the last");
    }
    if (descriptors[i].type != HIPDNN_BACKEND_TENSOR_DESCRIPTOR) continue;
    tensors.push_back(read_tensor(descriptors[i], at));
    const auto expected = static_cast<std::int64_t>(tensors.size());
    if (tensors.back().uid != expected) {
      at.fail("expected tensor uid " + std::to_string(expected) + ", got " + std::to_string(tensors.back().uid));
    }
  }
  return tensors;
}

std::vector<Operand> check_operands(const std::vector<records::Operand<Concrete>>& records, const std::vector<TensorFacts>& tensors,
                                    const Place& place) {
  std::vector<Operand> operands;
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Place at(place, i), uid(at, "uid");
    const TensorFacts& facts = tensors[check_index(records[i].uid - 1, tensors.size(), uid)];
    if (!facts.needs_pointer) uid.fail("a tensor that is neither virtual nor a baked value", std::to_string(facts.uid));
    if (!seen.insert(facts.uid).second) uid.fail("each tensor once", std::to_string(facts.uid));
    operands.push_back({facts.uid, records[i].role == Role::out, facts.extent_bytes, facts.alignment});
  }
  for (const TensorFacts& facts : tensors) {
    if (facts.needs_pointer && !seen.contains(facts.uid)) place.fail("tensor " + std::to_string(facts.uid) + " needs a pointer and is not listed");
  }
  if (std::ranges::none_of(operands, &Operand::is_output)) place.fail("no operand has the role \"out\"");
  return operands;
}

template <typename T>
void append(std::string& text, std::span<const T> values) {
  const std::size_t count = values.size();
  text.append(reinterpret_cast<const char*>(&count), sizeof count);
  if (!values.empty()) text.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

/// Bytes that are equal for equal graphs with equal roles.
std::string canonical_of(const Executable& executable) {
  std::string key;
  for (const DescriptorSpec& spec : executable.descriptors) {
    const std::array<std::int64_t, 2> head{spec.type, static_cast<std::int64_t>(spec.attributes.size())};
    append<std::int64_t>(key, head);
    for (const AttributeSpec& attribute : spec.attributes) {
      const std::array<std::int64_t, 3> kind{attribute.name, attribute.type, attribute.count};
      append<std::int64_t>(key, kind);
      append<std::byte>(key, attribute.bytes);
      append<std::uint32_t>(key, attribute.references);
    }
  }
  for (const Operand& operand : executable.operands) {
    const std::array<std::int64_t, 2> role{operand.uid, operand.is_output ? 1 : 0};
    append<std::int64_t>(key, role);
  }
  return key;
}

bool is_empty_tensor(const DescriptorSpec& spec) {
  if (spec.type != HIPDNN_BACKEND_TENSOR_DESCRIPTOR) return false;
  const AttributeSpec* dims = find_attribute(spec, HIPDNN_ATTR_TENSOR_DIMENSIONS);
  if (dims == nullptr || dims->type != HIPDNN_TYPE_INT64) return false;
  const std::vector<std::int64_t> sizes = integers_of(*dims);
  return std::ranges::find(sizes, 0) != sizes.end();
}

}  // namespace

std::optional<std::uint64_t> element_bits(std::int64_t dtype) {
  switch (dtype) {
    case HIPDNN_DATA_DOUBLE:
    case HIPDNN_DATA_INT64: return 64;
    case HIPDNN_DATA_FLOAT:
    case HIPDNN_DATA_INT32: return 32;
    case HIPDNN_DATA_HALF:
    case HIPDNN_DATA_BFLOAT16: return 16;
    case HIPDNN_DATA_INT8:
    case HIPDNN_DATA_UINT8:
    case HIPDNN_DATA_BOOLEAN:
    case HIPDNN_DATA_FP8_E4M3:
    case HIPDNN_DATA_FP8_E5M2:
    case HIPDNN_DATA_FP8_E8M0:
    case HIPDNN_DATA_FP8_E4M3_FNUZ:
    case HIPDNN_DATA_FP8_E5M2_FNUZ: return 8;
    case HIPDNN_DATA_FP6_E2M3_EXT:
    case HIPDNN_DATA_FP6_E3M2_EXT: return 6;
    case HIPDNN_DATA_FP4_E2M1:
    case HIPDNN_DATA_INT4: return 4;
    default: return std::nullopt;
  }
}

bool is_empty(const records::Executable<Concrete>& record) { return std::ranges::any_of(record.descriptors, is_empty_tensor); }

bool has_results(const records::Executable<Concrete>& record) {
  return std::ranges::any_of(record.operands, [&](const records::Operand<Concrete>& operand) {
    return operand.role == Role::out && std::ranges::none_of(record.descriptors, [&](const DescriptorSpec& spec) {
      const AttributeSpec* uid = find_attribute(spec, HIPDNN_ATTR_TENSOR_UNIQUE_ID);
      return is_empty_tensor(spec) && uid != nullptr && integers_of(*uid) == std::vector{operand.uid};
    });
  });
}

Executable check_executable(records::Executable<Concrete> record, const Place& place) {
  Executable executable;
  executable.name = std::move(record.name);
  executable.summary = std::move(record.summary);
  executable.descriptors = std::move(record.descriptors);
  const std::vector<TensorFacts> tensors = collect_tensors(executable.descriptors, Place(place, "descriptors"));
  executable.operands = check_operands(record.operands, tensors, Place(place, "operands"));
  executable.canonical = canonical_of(executable);
  return executable;
}

}  // namespace hipdnn_rt
