#include "graph_view.h"

#include <algorithm>
#include <map>
#include <unordered_set>

namespace hipdnn_ep {
namespace {

/// A list that ONNX Runtime fills into an array of the caller's after telling its length.
template <typename Item, typename Owner, typename Count, typename Fill>
std::vector<const Item*> list(const Ort& ort, const Owner* owner, Count count_items, Fill fill) {
  std::size_t count = 0;
  check(ort, count_items(owner, &count));
  std::vector<const Item*> items(count);
  if (count > 0) check(ort, fill(owner, items.data(), count));
  return items;
}

template <typename Owner, typename Get>
std::string text(const Ort& ort, const Owner* owner, Get get) {
  const char* found = nullptr;
  check(ort, get(owner, &found));
  return found == nullptr ? "" : found;
}

const OrtOpAttr* find_attribute(const Ort& ort, const OrtNode* node, const char* name) {
  const OrtOpAttr* attribute = nullptr;
  OrtStatus* status = ort.api->Node_GetAttributeByName(node, name, &attribute);
  if (status == nullptr) return attribute;
  // Some versions call an absent attribute a failure.
  ort.api->ReleaseStatus(status);
  return nullptr;
}

}  // namespace

bool TensorType::is_static() const {
  return dims.has_value() && std::all_of(dims->begin(), dims->end(), [](std::int64_t dim) { return dim >= 0; });
}

std::vector<const OrtNode*> nodes_of(const Ort& ort, const OrtGraph* graph) {
  return list<OrtNode>(ort, graph, ort.api->Graph_GetNumNodes, ort.api->Graph_GetNodes);
}

std::vector<const OrtValueInfo*> inputs_of(const Ort& ort, const OrtGraph* graph) {
  return list<OrtValueInfo>(ort, graph, ort.api->Graph_GetNumInputs, ort.api->Graph_GetInputs);
}

std::vector<const OrtValueInfo*> outputs_of(const Ort& ort, const OrtGraph* graph) {
  return list<OrtValueInfo>(ort, graph, ort.api->Graph_GetNumOutputs, ort.api->Graph_GetOutputs);
}

std::vector<const OrtValueInfo*> initializers_of(const Ort& ort, const OrtGraph* graph) {
  return list<OrtValueInfo>(ort, graph, ort.api->Graph_GetNumInitializers, ort.api->Graph_GetInitializers);
}

std::vector<const OrtValueInfo*> inputs_of(const Ort& ort, const OrtNode* node) {
  return list<OrtValueInfo>(ort, node, ort.api->Node_GetNumInputs, ort.api->Node_GetInputs);
}

std::vector<const OrtValueInfo*> outputs_of(const Ort& ort, const OrtNode* node) {
  return list<OrtValueInfo>(ort, node, ort.api->Node_GetNumOutputs, ort.api->Node_GetOutputs);
}

std::vector<const OrtOpAttr*> attributes_of(const Ort& ort, const OrtNode* node) {
  return list<OrtOpAttr>(ort, node, ort.api->Node_GetNumAttributes, ort.api->Node_GetAttributes);
}

std::vector<Subgraph> subgraphs_of(const Ort& ort, const OrtNode* node) {
  std::size_t count = 0;
  check(ort, ort.api->Node_GetNumSubgraphs(node, &count));
  std::vector<const OrtGraph*> graphs(count);
  std::vector<const char*> attributes(count);
  if (count > 0) check(ort, ort.api->Node_GetSubgraphs(node, graphs.data(), count, attributes.data()));
  std::vector<Subgraph> found;
  for (std::size_t i = 0; i < count; ++i) found.push_back({attributes[i], graphs[i]});
  return found;
}

std::string name_of(const Ort& ort, const OrtNode* node) { return text(ort, node, ort.api->Node_GetName); }
std::size_t id_of(const Ort& ort, const OrtNode* node) {
  std::size_t id = 0;
  check(ort, ort.api->Node_GetId(node, &id));
  return id;
}
std::string op_type_of(const Ort& ort, const OrtNode* node) { return text(ort, node, ort.api->Node_GetOperatorType); }
std::string domain_of(const Ort& ort, const OrtNode* node) { return text(ort, node, ort.api->Node_GetDomain); }
std::string model_path_of(const Ort& ort, const OrtGraph* graph) { return text(ort, graph, ort.api->Graph_GetModelPath); }

std::string name_of(const Ort& ort, const OrtValueInfo* value) {
  return value == nullptr ? "" : text(ort, value, ort.api->GetValueInfoName);
}

std::optional<TensorType> type_of(const Ort& ort, const OrtValueInfo* value) {
  const OrtTypeInfo* info = nullptr;
  check(ort, ort.api->GetValueInfoTypeInfo(value, &info));
  if (info == nullptr) return std::nullopt;
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  check(ort, ort.api->GetOnnxTypeFromTypeInfo(info, &kind));
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  if (kind == ONNX_TYPE_TENSOR) check(ort, ort.api->CastTypeInfoToTensorInfo(info, &tensor));
  if (tensor == nullptr) return std::nullopt;
  TensorType type;
  check(ort, ort.api->GetTensorElementType(tensor, &type.element));
  if (!ort.api->TensorTypeAndShape_HasShape(tensor)) return type;
  std::size_t rank = 0;
  check(ort, ort.api->GetDimensionsCount(tensor, &rank));
  type.dims.emplace(rank);
  std::vector<const char*> symbols(rank, nullptr);
  if (rank > 0) {
    check(ort, ort.api->GetDimensions(tensor, type.dims->data(), rank));
    check(ort, ort.api->GetSymbolicDimensions(tensor, symbols.data(), rank));
  }
  for (const char* symbol : symbols) type.symbols.emplace_back(symbol == nullptr ? "" : symbol);
  return type;
}

std::optional<TensorType> type_of(const Ort& ort, const OrtValueInfo* value, const KnownDims& known) {
  std::optional<TensorType> type = type_of(ort, value);
  const auto better = type ? known.find(name_of(ort, value)) : known.end();
  if (better != known.end()) {
    type->dims = better->second.dims;
    type->symbols = better->second.symbols;
  }
  return type;
}

bool is_constant(const Ort& ort, const OrtValueInfo* value) {
  bool constant = false;
  check(ort, ort.api->ValueInfo_IsConstantInitializer(value, &constant));
  return constant;
}

const OrtNode* parent_of(const Ort& ort, const OrtGraph* graph) {
  const OrtNode* parent = nullptr;
  check(ort, ort.api->Graph_GetParentNode(graph, &parent));
  return parent;
}

std::vector<const OrtValueInfo*> outer_values_of(const Ort& ort, const OrtGraph* graph) {
  std::unordered_set<std::string> own;
  const auto add = [&](const std::vector<const OrtValueInfo*>& values) {
    for (const OrtValueInfo* value : values) own.insert(name_of(ort, value));
  };
  add(inputs_of(ort, graph));
  add(initializers_of(ort, graph));
  const std::vector<const OrtNode*> nodes = nodes_of(ort, graph);
  for (const OrtNode* node : nodes) add(outputs_of(ort, node));
  std::map<std::string, const OrtValueInfo*> found;
  for (const OrtNode* node : nodes) {
    std::vector<const OrtValueInfo*> read = inputs_of(ort, node);
    const auto captured = list<OrtValueInfo>(ort, node, ort.api->Node_GetNumImplicitInputs, ort.api->Node_GetImplicitInputs);
    read.insert(read.end(), captured.begin(), captured.end());
    for (const OrtValueInfo* value : read) {
      if (value != nullptr && !own.contains(name_of(ort, value))) found.emplace(name_of(ort, value), value);
    }
  }
  std::vector<const OrtValueInfo*> values;
  for (const auto& [name, value] : found) values.push_back(value);
  return values;
}

std::string read_text(const Ort& ort, const OrtOpAttr* attribute) {
  // Called without room it answers the size, as a failure or not depending on the version.
  std::size_t size = 0;
  OrtStatus* status = ort.api->ReadOpAttr(attribute, ORT_OP_ATTR_STRING, nullptr, 0, &size);
  if (status != nullptr) ort.api->ReleaseStatus(status);
  std::string bytes(size, '\0');
  if (size > 0) check(ort, ort.api->ReadOpAttr(attribute, ORT_OP_ATTR_STRING, bytes.data(), size, &size));
  return bytes;
}

std::optional<std::string> text_attribute(const Ort& ort, const OrtNode* node, const char* name) {
  const OrtOpAttr* attribute = find_attribute(ort, node, name);
  if (attribute == nullptr) return std::nullopt;
  return read_text(ort, attribute);
}

std::optional<std::int64_t> integer_attribute(const Ort& ort, const OrtNode* node, const char* name) {
  const OrtOpAttr* attribute = find_attribute(ort, node, name);
  if (attribute == nullptr) return std::nullopt;
  std::int64_t value = 0;
  std::size_t size = 0;
  check(ort, ort.api->ReadOpAttr(attribute, ORT_OP_ATTR_INT, &value, sizeof(value), &size));
  return value;
}

}  // namespace hipdnn_ep
