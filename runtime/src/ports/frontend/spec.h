// The table behind every descriptor: which attributes it has, of what type and count, and which of them finalize needs.
#pragma once

#include <cstddef>
#include <span>

#include "hipdnn_backend.h"

namespace hipdnn_port {

class OperationDescriptor;

enum class Count { scalar, vector };
/// What an attribute asks of its owner.
enum class Need {
  required,   // set before finalize
  optional,   // may stay unset
  read_only,  // filled in by finalize, never set by the caller
};
/// How much of an attribute is read at once, as AMD's backend has it (backend/src/descriptors of hipDNN).
enum class Reading {
  any,    // as many elements as are asked for; for none, or without an array, their number
  whole,  // the same, but all elements or none
  one,    // one element in an array: its number is not told
};
/// What a descriptor-valued attribute points to; tensors of an operation are told apart by direction.
enum class Refers { nothing, input, output, operation, graph, engine, engine_config, knob_choice };

/// One attribute of a descriptor. Two rows with one name: any of their types is taken.
struct AttributeSpec {
  int name;
  hipdnnBackendAttributeType_t type;
  Count count = Count::scalar;
  Need need = Need::required;
  Refers refers = Refers::nothing;
  bool appends = false;    // repeated sets add to the values already there
  bool is_binary = false;  // CHAR that holds bytes: no terminator on get
  Reading reading = Reading::any;

  /// Whether it holds a text, which reads as an empty one where it is not set.
  bool is_text() const { return type == HIPDNN_TYPE_CHAR && !is_binary; }
};

/// One descriptor type. `validate` checks an operation's shapes at finalize; null for what has none.
struct DescriptorSpec {
  hipdnnBackendDescriptorType_t type;
  std::span<const AttributeSpec> attributes;
  hipdnnOperationType_ext_t operation = HIPDNN_OPERATION_TYPE_NOT_SET_EXT;
  void (*validate)(const OperationDescriptor& operation) = nullptr;
  bool is_operation = false;

  /// First row of that name, or null.
  const AttributeSpec* find(int name) const;
  /// Row of that name and type, or null.
  const AttributeSpec* find(int name, hipdnnBackendAttributeType_t type) const;
};

/// The row set of a descriptor type, or null where the library has no such descriptor.
const DescriptorSpec* find_spec(hipdnnBackendDescriptorType_t type);

/// Bytes of one element of an attribute value; 0 for types no attribute of this library uses.
std::size_t attribute_element_bytes(hipdnnBackendAttributeType_t type);

/// The parts of the table.
std::span<const DescriptorSpec> framework_specs();
std::span<const DescriptorSpec> forward_operation_specs();
std::span<const DescriptorSpec> attention_specs();
std::span<const DescriptorSpec> training_operation_specs();

/// Short forms the tables are written in.
namespace rows {

constexpr AttributeSpec tensor_in(int name) {
  return {.name = name, .type = HIPDNN_TYPE_BACKEND_DESCRIPTOR, .refers = Refers::input};
}
constexpr AttributeSpec tensor_out(int name) {
  return {.name = name, .type = HIPDNN_TYPE_BACKEND_DESCRIPTOR, .refers = Refers::output};
}
constexpr AttributeSpec one(int name, hipdnnBackendAttributeType_t type) { return {.name = name, .type = type}; }
constexpr AttributeSpec many(int name, hipdnnBackendAttributeType_t type) {
  return {.name = name, .type = type, .count = Count::vector};
}
constexpr AttributeSpec many(AttributeSpec row) {
  row.count = Count::vector;
  return row;
}
constexpr AttributeSpec optional(AttributeSpec row) {
  row.need = Need::optional;
  return row;
}
constexpr AttributeSpec read_only(AttributeSpec row) {
  row.need = Need::read_only;
  return row;
}
constexpr AttributeSpec binary(AttributeSpec row) {
  row.is_binary = true;
  return row;
}
constexpr AttributeSpec whole(AttributeSpec row) {
  row.reading = Reading::whole;
  return row;
}
constexpr AttributeSpec lone(AttributeSpec row) {
  row.reading = Reading::one;
  return row;
}
constexpr AttributeSpec appending(AttributeSpec row) {
  row.appends = true;
  return row;
}
constexpr AttributeSpec descriptor(int name, Refers refers) {
  return {.name = name, .type = HIPDNN_TYPE_BACKEND_DESCRIPTOR, .refers = refers};
}
constexpr AttributeSpec operation_name() { return optional(many(HIPDNN_ATTR_OPERATION_NAME_EXT, HIPDNN_TYPE_CHAR)); }
constexpr AttributeSpec operation_type() { return read_only(one(HIPDNN_ATTR_OPERATION_TYPE_EXT, HIPDNN_TYPE_OPERATION_TYPE_EXT)); }

}  // namespace rows
}  // namespace hipdnn_port
