#include "model_encoder.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "graph_view.h"
#include "protobuf.h"

namespace hipdnn_ep {
namespace {

// Field numbers of onnx.proto.
namespace model_field {
constexpr int ir_version = 1, producer = 2, graph = 7, opset = 8;
}
namespace opset_field {
constexpr int domain = 1, version = 2;
}
namespace graph_field {
constexpr int node = 1, name = 2, initializer = 5, input = 11, output = 12, value_info = 13;
}
namespace node_field {
constexpr int input = 1, output = 2, name = 3, op_type = 4, attribute = 5, domain = 7;
}
namespace attribute_field {
constexpr int name = 1, number = 2, integer = 3, text = 4, tensor = 5, graph = 6, numbers = 7, integers = 8, texts = 9, type = 20;
}
namespace tensor_field {
constexpr int dim = 1, element = 2, name = 8, raw = 9, external = 13, location = 14;
}
namespace entry_field {
constexpr int key = 1, value = 2;
}
namespace value_field {
constexpr int name = 1, type = 2;
}
namespace type_field {
constexpr int tensor = 1, element = 1, shape = 2, dim = 1, dim_value = 1, dim_symbol = 2;
}
constexpr int kExternalLocation = 1;
enum AttributeType { kFloat = 1, kInt = 2, kString = 3, kTensor = 4, kGraph = 5, kFloats = 6, kInts = 7, kStrings = 8, kType = 13 };

/// Bytes of an element of a type that weights have, floats and packed numbers; 0 for others, which may be sizes that the compiler reads.
std::uint64_t weight_bytes(ONNXTensorElementDataType type) {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: return 8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: return 4;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16: return 2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8: return 1;
    default: return 0;
  }
}

/// A tensor of ONNX Runtime, seen where it lies.
struct Tensor {
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<std::int64_t> dims;
  std::span<const std::byte> data;
};

/// Bytes of a tensor of weights, by its dims.
std::uint64_t byte_count(const Tensor& tensor) {
  std::uint64_t bytes = weight_bytes(tensor.element);
  for (const std::int64_t dim : tensor.dims) bytes *= static_cast<std::uint64_t>(dim);
  return bytes;
}

Tensor view_tensor(const Ort& ort, const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  check(ort, ort.api->GetTensorTypeAndShape(value, &raw));
  const OrtOwned<OrtTensorTypeAndShapeInfo> info(raw, ort.api->ReleaseTensorTypeAndShapeInfo);
  Tensor tensor;
  check(ort, ort.api->GetTensorElementType(raw, &tensor.element));
  std::size_t rank = 0;
  check(ort, ort.api->GetDimensionsCount(raw, &rank));
  tensor.dims.resize(rank);
  if (rank > 0) check(ort, ort.api->GetDimensions(raw, tensor.dims.data(), rank));
  if (tensor.element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return tensor;
  std::size_t bytes = 0;
  const void* data = nullptr;
  check(ort, ort.api->GetTensorSizeInBytes(value, &bytes));
  check(ort, ort.api->GetTensorData(value, &data));
  tensor.data = {static_cast<const std::byte*>(data), bytes};
  return tensor;
}

class Encoder {
 public:
  Encoder(const Ort& ort, EncodedModel& model, Weights weights, const KnownDims& known)
      : ort_(ort), model_(model), weights_(weights), known_(known) {}

  MessageWriter graph(const OrtGraph* graph, const Interface& interface, bool is_main) {
    MessageWriter out;
    std::unordered_set<std::string> known;
    out.text(graph_field::name, is_main ? "main" : "body");
    for (const OrtNode* node : nodes_of(ort_, graph)) {
      const std::string name = unique_name(node);
      if (is_main) model_.node_names.push_back(name);
      out.message(graph_field::node, this->node(node, name));
    }
    for (const OrtValueInfo* value : sorted_initializers(graph, is_main)) {
      if (is_constant(ort_, value) && known.insert(name_of(ort_, value)).second) initializer(out, value);
    }
    for (const OrtValueInfo* value : interface.inputs) declare(out, graph_field::input, value, known);
    for (const OrtValueInfo* value : interface.outputs) declare(out, graph_field::output, value, known);
    for (const OrtNode* node : nodes_of(ort_, graph)) {
      for (const OrtValueInfo* value : outputs_of(ort_, node)) {
        if (value != nullptr) declare(out, graph_field::value_info, value, known);
      }
    }
    return out;
  }

 private:
  /// Those of a body that is encoded alone have values of the graphs around it among them. By name: ONNX Runtime's order differs from session to session, and a model is to be encoded the same every time.
  std::vector<const OrtValueInfo*> sorted_initializers(const OrtGraph* graph, bool is_main) {
    std::vector<const OrtValueInfo*> values = initializers_of(ort_, graph);
    if (is_main) {
      const std::vector<const OrtValueInfo*> outer = outer_values_of(ort_, graph);
      values.insert(values.end(), outer.begin(), outer.end());
    }
    std::sort(values.begin(), values.end(), [&](const OrtValueInfo* a, const OrtValueInfo* b) { return name_of(ort_, a) < name_of(ort_, b); });
    return values;
  }

  /// The node's own name where it has one that no other node has; else one that it has in any view of its graph.
  std::string unique_name(const OrtNode* node) {
    std::string wanted = name_of(ort_, node);
    if (wanted.empty()) wanted = op_type_of(ort_, node) + "_" + std::to_string(id_of(ort_, node));
    std::string name = wanted;
    for (int i = 1; !names_.insert(name).second; ++i) name = wanted + "#" + std::to_string(i);
    return name;
  }

  MessageWriter node(const OrtNode* node, const std::string& name) {
    MessageWriter out;
    for (const OrtValueInfo* value : inputs_of(ort_, node)) out.text(node_field::input, name_of(ort_, value));
    for (const OrtValueInfo* value : outputs_of(ort_, node)) out.text(node_field::output, name_of(ort_, value));
    out.text(node_field::name, name);
    out.text(node_field::op_type, op_type_of(ort_, node));
    for (const OrtOpAttr* attribute : attributes_of(ort_, node)) {
      if (const std::optional<MessageWriter> encoded = this->attribute(attribute)) out.message(node_field::attribute, *encoded);
    }
    for (const Subgraph& body : subgraphs_of(ort_, node)) {
      MessageWriter attribute;
      attribute.text(attribute_field::name, body.attribute);
      attribute.message(attribute_field::graph, graph(body.graph, {inputs_of(ort_, body.graph), outputs_of(ort_, body.graph)}, false));
      attribute.integer(attribute_field::type, kGraph);
      out.message(node_field::attribute, attribute);
    }
    out.text(node_field::domain, domain_of(ort_, node));
    return out;
  }

  /// None for graphs, which come from the node.
  std::optional<MessageWriter> attribute(const OrtOpAttr* attribute) {
    const char* name = nullptr;
    check(ort_, ort_.api->OpAttr_GetName(attribute, &name));
    OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
    // ONNX Runtime fails for the types that it does not show.
    OrtStatus* status = ort_.api->OpAttr_GetType(attribute, &type);
    if (status != nullptr) ort_.api->ReleaseStatus(status);
    MessageWriter out;
    out.text(attribute_field::name, name);
    switch (type) {
      case ORT_OP_ATTR_INT:
        for (const std::int64_t value : read<std::int64_t>(attribute, type, 1)) out.integer(attribute_field::integer, value);
        out.integer(attribute_field::type, kInt);
        return out;
      case ORT_OP_ATTR_INTS:
        for (const std::int64_t value : read<std::int64_t>(attribute, type)) out.integer(attribute_field::integers, value);
        out.integer(attribute_field::type, kInts);
        return out;
      case ORT_OP_ATTR_FLOAT:
        for (const float value : read<float>(attribute, type, 1)) out.number(attribute_field::number, value);
        out.integer(attribute_field::type, kFloat);
        return out;
      case ORT_OP_ATTR_FLOATS:
        for (const float value : read<float>(attribute, type)) out.number(attribute_field::numbers, value);
        out.integer(attribute_field::type, kFloats);
        return out;
      case ORT_OP_ATTR_STRING:
        out.text(attribute_field::text, read_text(ort_, attribute));
        out.integer(attribute_field::type, kString);
        return out;
      case ORT_OP_ATTR_STRINGS:
        texts(out, read<char>(attribute, type));
        out.integer(attribute_field::type, kStrings);
        return out;
      case ORT_OP_ATTR_TENSOR:
        tensor_attribute(out, attribute);
        out.integer(attribute_field::type, kTensor);
        return out;
      case ORT_OP_ATTR_GRAPH:
        return std::nullopt;
      default:
        // Without its value, as an attribute that the compiler takes from no operator: the node stays on the CPU.
        out.integer(attribute_field::type, kType);
        return out;
    }
  }

  /// The elements of an attribute; `count` is given for single values, whose size ONNX Runtime does not tell.
  template <typename T>
  std::vector<T> read(const OrtOpAttr* attribute, OrtOpAttrType type, std::size_t count = 0) {
    std::size_t bytes = count * sizeof(T);
    if (count == 0) {
      // Called without room it fails and answers the size.
      OrtStatus* status = ort_.api->ReadOpAttr(attribute, type, nullptr, 0, &bytes);
      if (status != nullptr) ort_.api->ReleaseStatus(status);
    }
    std::vector<T> values(bytes / sizeof(T));
    if (!values.empty()) check(ort_, ort_.api->ReadOpAttr(attribute, type, values.data(), bytes, &bytes));
    return values;
  }

  /// Strings that follow each other, each with a zero at its end.
  static void texts(MessageWriter& out, const std::vector<char>& bytes) {
    for (auto begin = bytes.begin(); begin != bytes.end();) {
      const auto end = std::find(begin, bytes.end(), '\0');
      out.text(attribute_field::texts, {begin, end});
      begin = end == bytes.end() ? end : end + 1;
    }
  }

  void tensor_attribute(MessageWriter& out, const OrtOpAttr* attribute) {
    OrtValue* raw = nullptr;
    check(ort_, ort_.api->OpAttr_GetTensorAttributeAsOrtValue(attribute, &raw));
    const OrtOwned<OrtValue> value(raw, ort_.api->ReleaseValue);
    out.message(attribute_field::tensor, inline_tensor(view_tensor(ort_, raw), ""));
  }

  static MessageWriter tensor_head(const Tensor& tensor, const std::string& name) {
    MessageWriter out;
    for (const std::int64_t dim : tensor.dims) out.integer(tensor_field::dim, dim);
    out.integer(tensor_field::element, tensor.element);
    out.text(tensor_field::name, name);
    return out;
  }

  static MessageWriter inline_tensor(const Tensor& tensor, const std::string& name) {
    MessageWriter out = tensor_head(tensor, name);
    out.text(tensor_field::raw, {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()});
    return out;
  }

  MessageWriter external_tensor(const Tensor& tensor, const std::string& name, const OrtValueInfo* value) {
    const std::uint64_t bytes = byte_count(tensor);
    MessageWriter out = tensor_head(tensor, name);
    const auto entry = [&](const char* key, const std::string& value) {
      MessageWriter pair;
      pair.text(entry_field::key, key);
      pair.text(entry_field::value, value);
      out.message(tensor_field::external, pair);
    };
    entry("location", "weights");
    entry("offset", std::to_string(model_.weight_bytes));
    entry("length", std::to_string(bytes));
    out.integer(tensor_field::location, kExternalLocation);
    if (weights_ == Weights::included) {
      const Tensor values = read_initializer(value);
      if (values.data.size() != bytes) throw OrtFailure("initializer '" + name + "' is not as large as it is declared; export the model again");
      model_.weights.push_back({model_.weight_bytes, values.data});
    }
    model_.weight_bytes += (bytes + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
    return out;
  }

  /// The values of an initializer.
  Tensor read_initializer(const OrtValueInfo* value) {
    const OrtValue* data = nullptr;
    check(ort_, ort_.api->ValueInfo_GetInitializerValue(value, &data));
    return view_tensor(ort_, data);
  }

  /// An initializer as the model declares it, without its values; none where it is not declared as a tensor of fixed size of a type that weights have.
  std::optional<Tensor> describe_weights(const OrtValueInfo* value) {
    const std::optional<TensorType> type = type_of(ort_, value);
    if (!type || !type->is_static() || weight_bytes(type->element) == 0) return std::nullopt;
    return Tensor{type->element, *type->dims, {}};
  }

  void initializer(MessageWriter& out, const OrtValueInfo* value) {
    const std::string name = name_of(ort_, value);
    if (const std::optional<Tensor> weights = describe_weights(value); weights && byte_count(*weights) > kInlineInitializerBytes) {
      out.message(graph_field::initializer, external_tensor(*weights, name, value));
      return;
    }
    const Tensor tensor = read_initializer(value);
    if (tensor.element == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
      // No engine computes with strings: what reads it is rejected for its type, whatever it says.
      MessageWriter input;
      value_info(input, value);
      out.message(graph_field::input, input);
      return;
    }
    out.message(graph_field::initializer, inline_tensor(tensor, name));
  }

  void declare(MessageWriter& out, int field, const OrtValueInfo* value, std::unordered_set<std::string>& known) {
    const bool is_new = known.insert(name_of(ort_, value)).second;
    // An output is declared as such even where it is an input or initializer too.
    if (!is_new && field != graph_field::output) return;
    MessageWriter info;
    value_info(info, value);
    out.message(field, info);
  }

  void value_info(MessageWriter& out, const OrtValueInfo* value) {
    out.text(value_field::name, name_of(ort_, value));
    const std::optional<TensorType> type = type_of(ort_, value, known_);
    if (!type) return;
    MessageWriter tensor;
    tensor.integer(type_field::element, type->element);
    if (type->dims) {
      MessageWriter shape;
      for (std::size_t i = 0; i < type->dims->size(); ++i) {
        MessageWriter dim;
        if ((*type->dims)[i] >= 0) {
          dim.integer(type_field::dim_value, (*type->dims)[i]);
        } else if (!type->symbols[i].empty()) {
          dim.text(type_field::dim_symbol, type->symbols[i]);
        }
        shape.message(type_field::dim, dim);
      }
      tensor.message(type_field::shape, shape);
    }
    MessageWriter wrapped;
    wrapped.message(type_field::tensor, tensor);
    out.message(value_field::type, wrapped);
  }

  Ort ort_;
  EncodedModel& model_;
  Weights weights_;
  const KnownDims& known_;
  std::unordered_set<std::string> names_;
};

}  // namespace

Interface interface_of(const Ort& ort, const OrtGraph* graph) {
  Interface interface;
  for (const OrtValueInfo* value : inputs_of(ort, graph)) {
    if (!is_constant(ort, value)) interface.inputs.push_back(value);
  }
  for (const OrtValueInfo* value : outer_values_of(ort, graph)) {
    if (!is_constant(ort, value)) interface.inputs.push_back(value);
  }
  interface.outputs = outputs_of(ort, graph);
  return interface;
}

EncodedModel encode_model(const Ort& ort, const OrtGraph* graph, const Interface& interface, Weights weights, const KnownDims& known) {
  EncodedModel model;
  MessageWriter out;
  std::int64_t ir_version = 0;
  check(ort, ort.api->Graph_GetOnnxIRVersion(graph, &ir_version));
  out.integer(model_field::ir_version, ir_version);
  out.text(model_field::producer, "hipdnn_mlir");
  std::size_t count = 0;
  check(ort, ort.api->Graph_GetNumOperatorSets(graph, &count));
  std::vector<const char*> domains(count);
  std::vector<std::int64_t> versions(count);
  check(ort, ort.api->Graph_GetOperatorSets(graph, domains.data(), versions.data(), count));
  for (std::size_t i = 0; i < count; ++i) {
    MessageWriter opset;
    opset.text(opset_field::domain, domains[i]);
    opset.integer(opset_field::version, versions[i]);
    out.message(model_field::opset, opset);
  }
  out.message(model_field::graph, Encoder(ort, model, weights, known).graph(graph, interface, true));
  model.proto = out.bytes();
  return model;
}

}  // namespace hipdnn_ep
