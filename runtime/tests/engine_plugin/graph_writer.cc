#include "graph_writer.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>

#include "engine_plugin/flatbuffer_writer.h"
#include "graph_tables.h"

namespace plugin_backend {
namespace {

using namespace hipdnn_plugin;
using Table = FlatWriter::Table;

std::uint8_t data_type(hipdnnDataType_t type) {
  return static_cast<std::uint8_t>(1 + (std::ranges::find(data_types, type) - data_types.begin()));
}

TensorValue value_kind(hipdnnDataType_t type) {
  switch (type) {
    case HIPDNN_DATA_FLOAT: return TensorValue::Float32Value;
    case HIPDNN_DATA_HALF: return TensorValue::Float16Value;
    case HIPDNN_DATA_BFLOAT16: return TensorValue::BFloat16Value;
    case HIPDNN_DATA_DOUBLE: return TensorValue::Float64Value;
    case HIPDNN_DATA_INT64: return TensorValue::Int64Value;
    case HIPDNN_DATA_BOOLEAN: return TensorValue::BoolValue;
    case HIPDNN_DATA_INT32: return TensorValue::Int32Value;
    default: return TensorValue::Float8Value;  // integers of 8 bits too
  }
}

void write_value(FlatWriter& writer, std::size_t reference, const hipdnn_port::Tensor& tensor) {
  switch (value_kind(tensor.dtype)) {
    case TensorValue::Float64Value: return writer.structure(reference, tensor.scalar());
    case TensorValue::Int64Value: return writer.structure(reference, static_cast<std::int64_t>(tensor.scalar()));
    case TensorValue::Int32Value: return writer.structure(reference, static_cast<std::int32_t>(tensor.scalar()));
    case TensorValue::BoolValue:
    case TensorValue::Float8Value: return writer.structure(reference, tensor.value->front());
    default: return writer.structure(reference, static_cast<float>(tensor.scalar()));
  }
}

void write_tensor(FlatWriter& writer, std::size_t reference, const hipdnn_port::Tensor& tensor) {
  Table table;
  table.scalar(TensorSlot::uid, tensor.uid).reference(TensorSlot::name).reference(TensorSlot::strides).reference(TensorSlot::dims);
  table.scalar(TensorSlot::alignment, tensor.byte_alignment).scalar(TensorSlot::data_type, data_type(tensor.dtype));
  table.scalar(TensorSlot::is_virtual, static_cast<std::uint8_t>(tensor.is_virtual));
  if (tensor.value) {
    table.scalar(TensorSlot::value, static_cast<std::uint8_t>(value_kind(tensor.dtype))).reference(TensorSlot::value + 1);
  }
  const auto positions = writer.table(table, reference);
  writer.text(positions[1], tensor.name);
  writer.numbers(positions[2], std::span<const std::int64_t>(tensor.strides));
  writer.numbers(positions[3], std::span<const std::int64_t>(tensor.dims));
  if (tensor.value) write_value(writer, positions.back(), tensor);
}

/// A vector or a text of an operation, written behind its table.
struct Later {
  std::size_t place;
  const Field* field;
};

/// Writes an operation's attributes.
class OperationWriter {
 public:
  OperationWriter(FlatWriter& writer, const hipdnn_port::Graph& graph, const hipdnn_port::Node& node) : writer_(writer), graph_(graph), node_(node) {}

  void write(std::size_t reference, const Operation& operation) {
    for (const Field& field : operation.fields) {
      if (node_.has_tensor(field.attribute) || node_.has(field.attribute)) add(field);
    }
    const auto positions = writer_.table(table_, reference);
    for (const Later& later : later_) write_later(positions[later.place], *later.field);
  }

 private:
  template <typename T>
  void add_scalar(const Field& field, T value) {
    table_.scalar(field.slot, value);
    ++count_;
  }

  std::int64_t uid(int index) const { return graph_.tensor(index).uid; }

  void add(const Field& field) {
    switch (field.kind) {
      case Kind::tensor:
      case Kind::optional_tensor: return add_scalar(field, uid(node_.tensor(field.attribute)));
      case Kind::int64:
      case Kind::optional_int64: return add_scalar(field, node_.integer(field.attribute));
      case Kind::int32:
      case Kind::optional_int32: return add_scalar(field, static_cast<std::int32_t>(node_.integer(field.attribute)));
      case Kind::optional_float: return add_scalar(field, static_cast<float>(node_.real_or(field.attribute, 0)));
      case Kind::tensors:
      case Kind::int64s:
      case Kind::int32s:
      case Kind::text:
      case Kind::bytes:
        later_.push_back({count_++, &field});
        table_.reference(field.slot);
        return;
      case Kind::data_type: return add_scalar(field, data_type(static_cast<hipdnnDataType_t>(node_.integer(field.attribute))));
      case Kind::convolution_mode: return add_scalar(field, static_cast<std::uint8_t>(node_.integer(field.attribute) + 1));
      default: return add_scalar(field, static_cast<std::uint8_t>(node_.integer(field.attribute)));
    }
  }

  void write_later(std::size_t position, const Field& field) {
    if (field.kind == Kind::text) return writer_.text(position, std::get<std::string>(node_.attributes.at(field.attribute)));
    if (field.kind == Kind::bytes) {
      return writer_.numbers(position, std::span<const char>(std::get<std::string>(node_.attributes.at(field.attribute))));
    }
    if (field.kind == Kind::int64s) return writer_.numbers(position, std::span<const std::int64_t>(node_.ints(field.attribute)));
    if (field.kind == Kind::int32s) {
      const auto& wide = node_.ints(field.attribute);
      std::vector<std::int32_t> values;
      std::ranges::transform(wide, std::back_inserter(values), [](std::int64_t value) { return static_cast<std::int32_t>(value); });
      return writer_.numbers(position, std::span<const std::int32_t>(values));
    }
    std::vector<std::int64_t> uids;
    for (const int index : node_.tensors.at(field.attribute)) uids.push_back(uid(index));
    writer_.numbers(position, std::span<const std::int64_t>(uids));
  }

  FlatWriter& writer_;
  const hipdnn_port::Graph& graph_;
  const hipdnn_port::Node& node_;
  Table table_;
  std::size_t count_ = 0;
  std::vector<Later> later_;
};

void write_node(FlatWriter& writer, std::size_t reference, const hipdnn_port::Graph& graph, const hipdnn_port::Node& node) {
  const auto* operation = std::ranges::find(operations, node.type, &Operation::type);
  const auto place = static_cast<std::uint8_t>(1 + (operation - std::begin(operations)));
  Table table;
  table.reference(NodeSlot::name).reference(NodeSlot::attributes + 1).scalar(NodeSlot::attributes, place);
  const auto type = node.has(operation->compute_type) ? static_cast<hipdnnDataType_t>(node.integer(operation->compute_type)) : graph.compute_type;
  table.scalar(NodeSlot::compute_data_type, data_type(type));
  const auto positions = writer.table(table, reference);
  writer.text(positions[0], node.name);
  OperationWriter(writer, graph, node).write(positions[1], *operation);
}

}  // namespace

std::vector<std::byte> write_graph(const hipdnn_port::Graph& graph) {
  FlatWriter writer;
  Table table;
  table.reference(GraphSlot::name).reference(GraphSlot::tensors).reference(GraphSlot::nodes);
  table.scalar(GraphSlot::compute_data_type, data_type(graph.compute_type)).scalar(GraphSlot::io_data_type, data_type(graph.io_type));
  table.scalar(GraphSlot::intermediate_data_type, data_type(graph.intermediate_type));
  const auto positions = writer.table(table);
  writer.text(positions[0], graph.name);
  const auto tensors = writer.tables(positions[1], graph.tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) write_tensor(writer, tensors[i], graph.tensors[i]);
  const auto nodes = writer.tables(positions[2], graph.nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) write_node(writer, nodes[i], graph, graph.nodes[i]);
  return writer.take();
}

std::vector<std::byte> write_configuration(std::int64_t engine_id) {
  FlatWriter writer;
  writer.table(Table().scalar(EngineConfigSlot::engine_id, engine_id));
  return writer.take();
}

}  // namespace plugin_backend
