// ONNX Runtime's graphs as C++ values: nodes, values, types, attributes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ort.h"

namespace hipdnn_ep {

/// Element type and dims of a tensor value. A dim that is not known is -1 and has a symbol where the model names it.
struct TensorType {
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  /// None where not even the rank is known.
  std::optional<std::vector<std::int64_t>> dims;
  /// As long as `dims`.
  std::vector<std::string> symbols;

  bool is_static() const;
};

/// Value -> its dims in place of those that ONNX Runtime tells; -1 and a symbol, or an empty one, where they are open.
struct Dims {
  std::vector<std::int64_t> dims;
  std::vector<std::string> symbols;
};
using KnownDims = std::map<std::string, Dims>;

/// The functions below throw OrtFailure where ONNX Runtime refuses. Strings and pointers they return live as long as the graph.

std::vector<const OrtNode*> nodes_of(const Ort& ort, const OrtGraph* graph);
std::vector<const OrtValueInfo*> inputs_of(const Ort& ort, const OrtGraph* graph);
std::vector<const OrtValueInfo*> outputs_of(const Ort& ort, const OrtGraph* graph);
std::vector<const OrtValueInfo*> initializers_of(const Ort& ort, const OrtGraph* graph);
/// A missing optional input is null.
std::vector<const OrtValueInfo*> inputs_of(const Ort& ort, const OrtNode* node);
std::vector<const OrtValueInfo*> outputs_of(const Ort& ort, const OrtNode* node);
std::vector<const OrtOpAttr*> attributes_of(const Ort& ort, const OrtNode* node);

/// A graph in an attribute of a node.
struct Subgraph {
  std::string attribute;
  const OrtGraph* graph;
};
std::vector<Subgraph> subgraphs_of(const Ort& ort, const OrtNode* node);

std::string name_of(const Ort& ort, const OrtNode* node);
/// The same in all views of a graph.
std::size_t id_of(const Ort& ort, const OrtNode* node);
std::string op_type_of(const Ort& ort, const OrtNode* node);
std::string domain_of(const Ort& ort, const OrtNode* node);
/// The name of a value, empty for a missing one.
std::string name_of(const Ort& ort, const OrtValueInfo* value);
/// None where the value is no tensor.
std::optional<TensorType> type_of(const Ort& ort, const OrtValueInfo* value);
/// The same with the dims that are known better.
std::optional<TensorType> type_of(const Ort& ort, const OrtValueInfo* value, const KnownDims& known);
bool is_constant(const Ort& ort, const OrtValueInfo* value);
/// Path of the model file, empty where it was loaded from memory.
std::string model_path_of(const Ort& ort, const OrtGraph* graph);
/// The control flow node that a graph is a body of; none of a model's main graph.
const OrtNode* parent_of(const Ort& ort, const OrtGraph* graph);
/// Values of graphs around a body that its nodes read, by name.
std::vector<const OrtValueInfo*> outer_values_of(const Ort& ort, const OrtGraph* graph);

/// An attribute's bytes or integer; none where the node has no such attribute.
std::optional<std::string> text_attribute(const Ort& ort, const OrtNode* node, const char* name);
std::optional<std::int64_t> integer_attribute(const Ort& ort, const OrtNode* node, const char* name);
/// The bytes of an attribute of type string.
std::string read_text(const Ort& ort, const OrtOpAttr* attribute);

}  // namespace hipdnn_ep
