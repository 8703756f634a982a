#include "engine_plugin/graph_reader.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "engine_plugin/failure.h"
#include "engine_plugin/flatbuffer.h"
#include "engine_plugin/tensor_value.h"
#include "graph_tables.h"

namespace hipdnn_plugin {
namespace {

using hipdnn_rt::AttributeSpec;
using hipdnn_rt::DescriptorSpec;

/// Tensors' places in the list of descriptors, by uid.
using Places = std::map<std::int64_t, std::uint32_t>;

constexpr std::int64_t default_alignment = 16;

template <typename T>
void add(DescriptorSpec& spec, hipdnnBackendAttributeName_t name, hipdnnBackendAttributeType_t type, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  spec.attributes.push_back({name, type, static_cast<std::int64_t>(values.size()), {bytes.begin(), bytes.end()}, {}});
}

template <typename T>
void add_one(DescriptorSpec& spec, hipdnnBackendAttributeName_t name, hipdnnBackendAttributeType_t type, T value) {
  add(spec, name, type, std::span<const T>(&value, 1));
}

void add_text(DescriptorSpec& spec, hipdnnBackendAttributeName_t name, std::string_view text) {
  if (!text.empty()) add(spec, name, HIPDNN_TYPE_CHAR, std::span(text.data(), text.size()));
}

void add_references(DescriptorSpec& spec, hipdnnBackendAttributeName_t name, std::vector<std::uint32_t> references) {
  const auto count = static_cast<std::int64_t>(references.size());
  spec.attributes.push_back({name, HIPDNN_TYPE_BACKEND_DESCRIPTOR, count, {}, std::move(references)});
}

/// Nothing where it is not set.
std::optional<hipdnnDataType_t> data_type(const FlatTable& table, int slot) {
  const auto value = table.scalar<std::uint8_t>(slot, 0);
  if (value == 0) return std::nullopt;
  if (value > data_types.size()) refuse_graph("data type " + std::to_string(value) + " is not known");
  return data_types[value - 1];  // NOLINT: checked above
}

void add_data_type(DescriptorSpec& spec, hipdnnBackendAttributeName_t name, std::optional<hipdnnDataType_t> type) {
  if (type) add_one(spec, name, HIPDNN_TYPE_DATA_TYPE, *type);
}

DescriptorSpec read_tensor(const FlatTable& table) {
  const auto uid = table.scalar<std::int64_t>(TensorSlot::uid, 0);
  const std::string name = "tensor " + std::to_string(uid);
  if (table.has(TensorSlot::ragged_offset_tensor)) refuse_graph(name + " has ragged offsets");
  const auto type = data_type(table, TensorSlot::data_type);
  if (!type) refuse_graph(name + " has no data type");
  DescriptorSpec spec{HIPDNN_BACKEND_TENSOR_DESCRIPTOR, {}};
  add_one(spec, HIPDNN_ATTR_TENSOR_UNIQUE_ID, HIPDNN_TYPE_INT64, uid);
  add_text(spec, HIPDNN_ATTR_TENSOR_NAME_EXT, table.text(TensorSlot::name));
  add_data_type(spec, HIPDNN_ATTR_TENSOR_DATA_TYPE, type);
  add<std::int64_t>(spec, HIPDNN_ATTR_TENSOR_DIMENSIONS, HIPDNN_TYPE_INT64, table.vector<std::int64_t>(TensorSlot::dims));
  add<std::int64_t>(spec, HIPDNN_ATTR_TENSOR_STRIDES, HIPDNN_TYPE_INT64, table.vector<std::int64_t>(TensorSlot::strides));
  if (table.flag(TensorSlot::is_virtual)) add_one(spec, HIPDNN_ATTR_TENSOR_IS_VIRTUAL, HIPDNN_TYPE_BOOLEAN, true);
  // A scalar that is passed at execution is a tensor of one element here, wherever the caller has it.
  const bool is_passed = table.flag(TensorSlot::is_runtime_pass_by_value);
  const std::int64_t alignment = is_passed ? static_cast<std::int64_t>(std::max<std::size_t>(element_bytes(*type), 1))
                                           : table.scalar<std::int64_t>(TensorSlot::alignment, default_alignment);
  add_one(spec, HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT, HIPDNN_TYPE_INT64, alignment);
  if (const auto value = read_value(table, *type)) add<std::byte>(spec, HIPDNN_ATTR_TENSOR_VALUE_EXT, HIPDNN_TYPE_CHAR, *value);
  return spec;
}

/// Reads the fields of one operation.
class OperationReader {
 public:
  OperationReader(const FlatTable& table, const Operation& operation, const Places& places)
      : table_(table), operation_(operation), places_(places), spec_{operation.type, {}} {}

  DescriptorSpec read() {
    for (const Field& field : operation_.fields) read(field);
    return std::move(spec_);
  }

 private:
  std::uint32_t place(std::int64_t uid) const {
    const auto found = places_.find(uid);
    if (found == places_.end()) refuse_graph(std::string(operation_.name) + " names tensor " + std::to_string(uid) + ", which the graph does not have");
    return found->second;
  }

  template <typename T>
  void number(const Field& field, hipdnnBackendAttributeType_t type, bool is_optional) {
    const auto value = table_.optional<T>(field.slot);
    if (value || !is_optional) add_one(spec_, field.attribute, type, value.value_or(T{}));
  }

  void boolean(const Field& field, bool is_optional) {
    if (!is_optional || table_.has(field.slot)) add_one(spec_, field.attribute, HIPDNN_TYPE_BOOLEAN, table_.flag(field.slot));
  }

  /// `shift`: what the flatbuffer's values have more than the ABI's.
  void enumerator(const Field& field, hipdnnBackendAttributeType_t type, std::int32_t shift = 0) {
    const auto value = static_cast<std::int32_t>(table_.scalar<std::uint8_t>(field.slot, 0));
    if (value != 0) add_one(spec_, field.attribute, type, value - shift);
  }

  void tensor(const Field& field, bool is_optional) {
    const auto uid = table_.optional<std::int64_t>(field.slot);
    if (uid || !is_optional) add_references(spec_, field.attribute, {place(uid.value_or(0))});
  }

  void tensors(const Field& field) {
    std::vector<std::uint32_t> references;
    for (const std::int64_t uid : table_.vector<std::int64_t>(field.slot)) references.push_back(place(uid));
    if (!references.empty()) add_references(spec_, field.attribute, std::move(references));
  }

  template <typename T>
  void numbers(const Field& field, hipdnnBackendAttributeType_t type) {
    const std::vector<T> values = table_.vector<T>(field.slot);
    if (!values.empty()) add<T>(spec_, field.attribute, type, values);
  }

  void read(const Field& field) {
    switch (field.kind) {
      case Kind::tensor: return tensor(field, false);
      case Kind::optional_tensor: return tensor(field, true);
      case Kind::tensors: return tensors(field);
      case Kind::int64: return number<std::int64_t>(field, HIPDNN_TYPE_INT64, false);
      case Kind::optional_int64: return number<std::int64_t>(field, HIPDNN_TYPE_INT64, true);
      case Kind::int64s: return numbers<std::int64_t>(field, HIPDNN_TYPE_INT64);
      case Kind::int32: return number<std::int32_t>(field, HIPDNN_TYPE_INT32, false);
      case Kind::optional_int32: return number<std::int32_t>(field, HIPDNN_TYPE_INT32, true);
      case Kind::int32s: return numbers<std::int32_t>(field, HIPDNN_TYPE_INT32);
      case Kind::optional_float: return number<float>(field, HIPDNN_TYPE_FLOAT, true);
      case Kind::boolean: return boolean(field, false);
      case Kind::optional_boolean: return boolean(field, true);
      case Kind::text: return add_text(spec_, field.attribute, table_.text(field.slot));
      case Kind::bytes: return numbers<char>(field, HIPDNN_TYPE_CHAR);
      case Kind::data_type: return add_data_type(spec_, field.attribute, data_type(table_, field.slot));
      case Kind::convolution_mode: return enumerator(field, HIPDNN_TYPE_CONVOLUTION_MODE, 1);
      case Kind::pointwise_mode: return enumerator(field, HIPDNN_TYPE_POINTWISE_MODE);
      case Kind::reduction_operator: return enumerator(field, HIPDNN_TYPE_REDUCTION_OPERATOR_TYPE);
      case Kind::resample_mode: return enumerator(field, HIPDNN_TYPE_RESAMPLE_MODE);
      case Kind::padding_mode: return enumerator(field, HIPDNN_TYPE_PADDING_MODE);
      case Kind::norm_phase: return enumerator(field, HIPDNN_TYPE_NORM_FWD_PHASE);
      case Kind::diagonal_alignment: return enumerator(field, HIPDNN_TYPE_DIAGONAL_ALIGNMENT_EXT);
      case Kind::attention_implementation: return enumerator(field, HIPDNN_TYPE_ATTENTION_IMPLEMENTATION_EXT);
    }
  }

  FlatTable table_;
  const Operation& operation_;
  const Places& places_;
  DescriptorSpec spec_;
};

DescriptorSpec read_node(const FlatTable& node, std::optional<hipdnnDataType_t> graph_type, const Places& places) {
  const std::size_t place = node.scalar<std::uint8_t>(NodeSlot::attributes, 0);
  if (place == 0 || place > std::size(operations)) refuse_graph("operation " + std::to_string(place) + " of hipDNN's list is not known");
  const Operation& operation = operations[place - 1];  // NOLINT: checked above
  const auto fields = node.table(NodeSlot::attributes + 1);
  if (!fields) node.refuse("an operation has no attributes");
  DescriptorSpec spec = OperationReader(*fields, operation, places).read();
  const auto own_type = data_type(node, NodeSlot::compute_data_type);
  add_data_type(spec, operation.compute_type, own_type ? own_type : graph_type);
  add_text(spec, HIPDNN_ATTR_OPERATION_NAME_EXT, node.text(NodeSlot::name));
  return spec;
}

}  // namespace

ReadGraph read_graph(std::span<const std::byte> bytes) {
  FlatBuffer buffer(bytes, "the graph");
  const FlatTable graph = FlatTable::root(buffer);
  ReadGraph read;
  read.takes_overrides = graph.flag(GraphSlot::is_override_shape_enabled);
  Places places;
  for (const FlatTable& tensor : graph.tables(GraphSlot::tensors)) {
    const auto uid = tensor.scalar<std::int64_t>(TensorSlot::uid, 0);
    if (!places.emplace(uid, static_cast<std::uint32_t>(places.size())).second) refuse_graph("two tensors have the uid " + std::to_string(uid));
    read.has_virtual_tensors = read.has_virtual_tensors || tensor.flag(TensorSlot::is_virtual);
    read.descriptors.push_back(read_tensor(tensor));
  }
  const auto compute_type = data_type(graph, GraphSlot::compute_data_type);
  std::vector<std::uint32_t> nodes;
  for (const FlatTable& node : graph.tables(GraphSlot::nodes)) {
    nodes.push_back(static_cast<std::uint32_t>(read.descriptors.size()));
    read.descriptors.push_back(read_node(node, compute_type, places));
  }
  if (nodes.empty()) refuse_graph("the graph has no operations");
  DescriptorSpec spec{HIPDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, {}};
  spec.attributes.push_back({HIPDNN_ATTR_OPERATIONGRAPH_HANDLE, HIPDNN_TYPE_HANDLE, 1, {}, {}});
  add_references(spec, HIPDNN_ATTR_OPERATIONGRAPH_OPS, std::move(nodes));
  add_data_type(spec, HIPDNN_ATTR_OPERATIONGRAPH_COMPUTE_DATA_TYPE_EXT, compute_type);
  add_data_type(spec, HIPDNN_ATTR_OPERATIONGRAPH_INTERMEDIATE_DATA_TYPE_EXT, data_type(graph, GraphSlot::intermediate_data_type));
  add_data_type(spec, HIPDNN_ATTR_OPERATIONGRAPH_IO_DATA_TYPE_EXT, data_type(graph, GraphSlot::io_data_type));
  add_text(spec, HIPDNN_ATTR_OPERATIONGRAPH_NAME_EXT, graph.text(GraphSlot::name));
  read.descriptors.push_back(std::move(spec));
  return read;
}

std::vector<DescriptorSpec> with_shapes(std::vector<DescriptorSpec> descriptors, std::span<const ShapeOverride> overrides) {
  for (const ShapeOverride& shape : overrides) {
    const auto found = std::ranges::find_if(descriptors, [&](const DescriptorSpec& spec) {
      return spec.type == HIPDNN_BACKEND_TENSOR_DESCRIPTOR &&
             hipdnn_rt::values_of<std::int64_t>(spec, HIPDNN_ATTR_TENSOR_UNIQUE_ID) == std::vector{shape.uid};
    });
    if (found == descriptors.end()) {
      refuse_value("shapes are given for tensor " + std::to_string(shape.uid) + ", which the graph does not have");
    }
    std::erase_if(found->attributes, [](const AttributeSpec& attribute) {
      return attribute.name == HIPDNN_ATTR_TENSOR_DIMENSIONS || attribute.name == HIPDNN_ATTR_TENSOR_STRIDES;
    });
    add<std::int64_t>(*found, HIPDNN_ATTR_TENSOR_DIMENSIONS, HIPDNN_TYPE_INT64, shape.dims);
    add<std::int64_t>(*found, HIPDNN_ATTR_TENSOR_STRIDES, HIPDNN_TYPE_INT64, shape.strides);
  }
  return descriptors;
}

}  // namespace hipdnn_plugin
