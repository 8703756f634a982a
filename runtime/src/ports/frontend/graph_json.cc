// Writes the JSON form: attribute names and enumerators in lower case, without the parts that repeat the node's type. With what AMD's reader wants
// (flatbuffers_sdk utilities/json of hipDNN, versions of 2026).
#include "graph_json.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "graph_descriptor.h"
#include "names.h"
#include "spec.h"
#include "status.h"

namespace hipdnn_port {
namespace {

using Json = nlohmann::ordered_json;

/// Where a node has its tensors and parameters.
enum class Place {
  parameters,  // tensors in "inputs" and "outputs", parameters in "parameters"
  attributes,  // the latter in "attributes"
  inputs,      // the latter in "inputs"
  beside,      // the latter in the node itself
  node,        // all in the node itself
};

struct NodeForm {
  hipdnnBackendDescriptorType_t type;
  std::string_view name;
  std::string_view tensors;     // what precedes a tensor's name in its attribute's
  std::string_view parameters;  // the same for parameters
  Place place = Place::parameters;
  bool is_sparse = false;  // what is not set is left out; AMD's readers of other nodes want each key
};

constexpr std::array node_forms{
    NodeForm{HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "ConvolutionFwdAttributes", "OPERATION_CONVOLUTION_FORWARD_",
             "CONVOLUTION_"},
    NodeForm{HIPDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, "ConvolutionBwdAttributes", "OPERATION_CONVOLUTION_BWD_DATA_",
             "CONVOLUTION_"},
    NodeForm{HIPDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, "ConvolutionWrwAttributes",
             "OPERATION_CONVOLUTION_BWD_FILTER_", "CONVOLUTION_"},
    NodeForm{HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "PointwiseAttributes", "OPERATION_POINTWISE_", "POINTWISE_", Place::inputs},
    NodeForm{HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "MatmulAttributes", "OPERATION_MATMUL_", "MATMUL_"},
    NodeForm{HIPDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "ReductionAttributes", "OPERATION_REDUCTION_", "REDUCTION_", Place::node, true},
    NodeForm{HIPDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, "ResampleFwdAttributes", "OPERATION_RESAMPLE_FWD_", "RESAMPLE_", Place::node, true},
    NodeForm{HIPDNN_BACKEND_OPERATION_BATCHNORM_INFERENCE_DESCRIPTOR_EXT, "BatchnormInferenceAttributes",
             "OPERATION_BATCHNORM_INFERENCE_", "BATCHNORM_INF_"},
    NodeForm{HIPDNN_BACKEND_OPERATION_BATCHNORM_INFERENCE_VARIANCE_DESCRIPTOR_EXT, "BatchnormInferenceAttributesVarianceExt",
             "OPERATION_BATCHNORM_INFERENCE_VARIANCE_", "BATCHNORM_INF_VAR_"},
    NodeForm{HIPDNN_BACKEND_OPERATION_BATCHNORM_DESCRIPTOR_EXT, "BatchnormAttributes", "OPERATION_BATCHNORM_", "BATCHNORM_"},
    NodeForm{HIPDNN_BACKEND_OPERATION_BATCHNORM_BACKWARD_DESCRIPTOR_EXT, "BatchnormBackwardAttributes", "OPERATION_BATCHNORM_BACKWARD_",
             "BATCHNORM_BACKWARD_"},
    NodeForm{HIPDNN_BACKEND_OPERATION_LAYERNORM_DESCRIPTOR_EXT, "LayernormAttributes", "OPERATION_LAYERNORM_", "LAYERNORM_", Place::beside},
    NodeForm{HIPDNN_BACKEND_OPERATION_LAYERNORM_BACKWARD_DESCRIPTOR_EXT, "LayernormBackwardAttributes", "OPERATION_LAYERNORM_BACKWARD_",
             "LAYERNORM_BACKWARD_", Place::beside},
    NodeForm{HIPDNN_BACKEND_OPERATION_RMSNORM_DESCRIPTOR_EXT, "RMSNormAttributes", "OPERATION_RMSNORM_", "RMSNORM_", Place::beside, true},
    NodeForm{HIPDNN_BACKEND_OPERATION_RMSNORM_BACKWARD_DESCRIPTOR_EXT, "RMSNormBackwardAttributes", "OPERATION_RMSNORM_BACKWARD_",
             "RMSNORM_BACKWARD_", Place::parameters, true},
    NodeForm{HIPDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, "SdpaAttributes", "OPERATION_SDPA_FWD_", "SDPA_FWD_", Place::attributes},
    NodeForm{HIPDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR_EXT, "SdpaBackwardAttributes", "OPERATION_SDPA_BWD_", "SDPA_BWD_"},
    NodeForm{HIPDNN_BACKEND_OPERATION_CUSTOM_OP_DESCRIPTOR_EXT, "CustomOpAttributes", "OPERATION_CUSTOM_OP_", "CUSTOM_OP_", Place::node},
    NodeForm{HIPDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR, "BlockScaleQuantizeAttributes", "OPERATION_BLOCK_SCALE_QUANTIZE_",
             "BLOCK_SCALE_QUANTIZE_", Place::beside, true},
    NodeForm{HIPDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR, "BlockScaleDequantizeAttributes",
             "OPERATION_BLOCK_SCALE_DEQUANTIZE_", "BLOCK_SCALE_DEQUANTIZE_", Place::beside, true},
};

struct Renamed {
  std::string_view node;  // empty: of all
  std::string_view from, to;
};

// Where the JSON form's word is not the attribute's.
constexpr std::array renamed{
    Renamed{"", "pre_paddings", "pre_padding"},
    Renamed{"", "post_paddings", "post_padding"},
    Renamed{"", "filter_strides", "stride"},
    Renamed{"", "strides", "stride"},
    Renamed{"", "dilations", "dilation"},
    Renamed{"", "window_dims", "window"},
    Renamed{"", "fwd_phase", "forward_phase"},
    Renamed{"PointwiseAttributes", "mode", "operation"},
    Renamed{"PointwiseAttributes", "axis", "axis_tensor_uid"},
    Renamed{"ReductionAttributes", "x_tensor_uid", "in_tensor_uid"},
    Renamed{"ReductionAttributes", "y_tensor_uid", "out_tensor_uid"},
    Renamed{"ReductionAttributes", "operator", "mode"},
    Renamed{"ResampleFwdAttributes", "mode", "resample_mode"},
    Renamed{"ResampleFwdAttributes", "idx_tensor_uid", "index_tensor_uid"},
    Renamed{"LayernormBackwardAttributes", "epsilon_tensor_uid", "epsilon_uid"},
    Renamed{"CustomOpAttributes", "inputs_tensor_uid", "input_tensor_uids"},
    Renamed{"CustomOpAttributes", "outputs_tensor_uid", "output_tensor_uids"},
    Renamed{"CustomOpAttributes", "id", "custom_op_id"},
    Renamed{"BlockScaleDequantizeAttributes", "neg_scale", "is_negative_scale"},
};

struct EnumeratorForm {
  hipdnnBackendAttributeType_t type;
  std::string_view prefix, suffix;  // of the ABI's names, left out
  bool is_lower;
};

constexpr std::array enumerator_forms{
    EnumeratorForm{HIPDNN_TYPE_POINTWISE_MODE, "HIPDNN_POINTWISE_", "", true},
    EnumeratorForm{HIPDNN_TYPE_REDUCTION_OPERATOR_TYPE, "HIPDNN_REDUCE_TENSOR_", "", true},
    EnumeratorForm{HIPDNN_TYPE_RESAMPLE_MODE, "HIPDNN_RESAMPLE_", "", true},
    EnumeratorForm{HIPDNN_TYPE_PADDING_MODE, "HIPDNN_PADDING_", "", true},
    EnumeratorForm{HIPDNN_TYPE_NORM_FWD_PHASE, "HIPDNN_NORM_FWD_", "", false},
    EnumeratorForm{HIPDNN_TYPE_DIAGONAL_ALIGNMENT_EXT, "HIPDNN_DIAGONAL_ALIGNMENT_", "_EXT", false},
    EnumeratorForm{HIPDNN_TYPE_ATTENTION_IMPLEMENTATION_EXT, "HIPDNN_ATTENTION_IMPLEMENTATION_", "_EXT", false},
};

std::string lower(std::string_view from) {
  std::string lowered(from);
  std::ranges::transform(lowered, lowered.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lowered;
}

/// The attribute's own word: without the ABI's prefix, the node's, and the suffixes _EXT and DESC.
std::string attribute_word(const NodeForm& form, hipdnnBackendAttributeName_t attribute) {
  const std::string full = attribute_name(attribute);
  std::string_view word = full;
  word.remove_prefix(std::string_view("HIPDNN_ATTR_").size());
  for (const std::string_view prefix : {form.tensors, form.parameters}) {
    if (word.starts_with(prefix)) word.remove_prefix(prefix.size());
  }
  for (const std::string_view suffix : {"_EXT", "_DESC", "DESC"}) {
    if (word.ends_with(suffix)) word.remove_suffix(suffix.size());
  }
  return lower(word);
}

/// A number that AMD's reader takes for a float: it reads numbers alone, and JSON has no infinities and no NaN. An infinity is written as a
/// number beyond all floats, which becomes one on the way from double to float.
Json real_of_float(double value) {
  constexpr double beyond_floats = 1e300;
  if (std::isnan(value)) fail(HIPDNN_STATUS_NOT_SUPPORTED, "a graph with a NaN has no JSON form");
  return std::isinf(value) ? std::copysign(beyond_floats, value) : value;
}

/// The same of a double, for which no number becomes an infinity.
Json real_of_double(double value) {
  if (!std::isfinite(value)) fail(HIPDNN_STATUS_NOT_SUPPORTED, "a graph with an infinity or a NaN in double has no JSON form");
  return value;
}

/// "relu_fwd", "CROSS_CORRELATION", "TRAINING": the ABI's name without what it has in common with the others of its type.
Json enumerator(hipdnnBackendAttributeType_t type, int value) {
  const auto name = enumerator_name(type, value);
  if (!name) return value;
  const auto form = std::ranges::find(enumerator_forms, type, &EnumeratorForm::type);
  if (form == enumerator_forms.end()) return name->substr(std::string_view("HIPDNN_").size());
  std::string_view word = name->substr(form->prefix.size());
  if (word.ends_with(form->suffix)) word.remove_suffix(form->suffix.size());
  return form->is_lower ? lower(word) : std::string(word);
}

/// "relu_fwd", "CROSS_CORRELATION", 3, [1, 1], true: a parameter by the type its attribute has.
Json parameter(const AttributeSpec& row, const AttributeValue& value) {
  if (const auto* characters = std::get_if<std::string>(&value)) {
    return row.is_binary ? Json(std::vector<unsigned char>(characters->begin(), characters->end())) : Json(*characters);
  }
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
    return row.type == HIPDNN_TYPE_DOUBLE ? real_of_double(reals->at(0)) : real_of_float(reals->at(0));
  }
  const auto& integers = std::get<std::vector<std::int64_t>>(value);
  if (row.count == Count::vector) return integers;
  if (row.type == HIPDNN_TYPE_BOOLEAN) return integers.at(0) != 0;
  if (row.type == HIPDNN_TYPE_DATA_TYPE) return data_type_name(static_cast<int>(integers.at(0)));
  return enumerator(row.type, static_cast<int>(integers.at(0)));
}

bool is_compute_type(std::string_view word) { return word == "comp_type" || word == "math_prec"; }

std::string json_word(const NodeForm& form, const std::string& word) {
  const auto is_it = [&](const Renamed& row) { return row.from == word && (row.node.empty() || row.node == form.name); };
  const auto found = std::ranges::find_if(renamed, is_it);
  return found == renamed.end() ? word : std::string(found->to);
}

Json tensor_uids(const Graph& graph, const AttributeSpec& row, const std::vector<int>& indices) {
  Json uids = Json::array();
  for (const int index : indices) uids.push_back(graph.tensor(index).uid);
  return row.count == Count::scalar ? uids.at(0) : uids;
}

/// Where in a node's JSON an attribute stands.
Json& place_of(Json& node, const NodeForm& form, const AttributeSpec& row) {
  if (form.place == Place::node) return node;
  if (row.type == HIPDNN_TYPE_BACKEND_DESCRIPTOR) return node[row.refers == Refers::output ? "outputs" : "inputs"];
  switch (form.place) {
    case Place::inputs: return node["inputs"];
    case Place::attributes: return node["attributes"];
    case Place::parameters: return node["parameters"];
    default: return node;
  }
}

/// What AMD's reader wants to find of an attribute that is not set.
Json absent(const AttributeSpec& row) {
  if (row.count == Count::vector) return Json::array();
  if (row.type == HIPDNN_TYPE_BOOLEAN) return false;
  return row.type == HIPDNN_TYPE_DATA_TYPE ? Json("unset") : Json();
}

void add_attribute(Json& json, const Graph& graph, const Node& node, const NodeForm& form, const AttributeSpec& row) {
  const auto name = static_cast<hipdnnBackendAttributeName_t>(row.name);
  const bool is_tensor = row.type == HIPDNN_TYPE_BACKEND_DESCRIPTOR;
  const std::string own = attribute_word(form, name);
  if (is_compute_type(own)) {
    if (node.has(name)) json["compute_data_type"] = parameter(row, node.attributes.at(name));
    return;
  }
  const std::string word = json_word(form, is_tensor ? own + "_tensor_uid" : own);
  Json& place = place_of(json, form, row);
  if (is_tensor ? node.has_tensor(name) : node.has(name)) {
    place[word] = is_tensor ? tensor_uids(graph, row, node.tensors.at(name)) : parameter(row, node.attributes.at(name));
    // AMD's layer norm alone has the number of its phase.
    if (form.name == "LayernormAttributes" && row.type == HIPDNN_TYPE_NORM_FWD_PHASE) place[word] = node.integer_or(name, 0);
  } else if (!form.is_sparse) {
    place[word] = absent(row);
  }
}

Json node_to_json(const Graph& graph, const Node& node) {
  const auto form = std::ranges::find(node_forms, node.type, &NodeForm::type);
  if (form == node_forms.end()) fail(HIPDNN_STATUS_INTERNAL_ERROR, descriptor_name(node.type), " has no JSON form");
  Json json{{"name", node.name}, {"type", form->name}, {"compute_data_type", data_type_name(graph.compute_type)}};
  if (form->place != Place::node) json["inputs"] = json["outputs"] = Json::object();
  for (const AttributeSpec& row : find_spec(node.type)->attributes) {
    if (row.name == sdpa_soft_cap) {  // no word of AMD's, whose reader would compute without
      if (node.has(sdpa_soft_cap)) fail(HIPDNN_STATUS_NOT_SUPPORTED, "attention with a soft cap has no JSON form");
      continue;
    }
    if (row.need != Need::read_only && row.name != HIPDNN_ATTR_OPERATION_NAME_EXT) add_attribute(json, graph, node, *form, row);
  }
  return json;
}

const char* value_type(hipdnnDataType_t type) {
  switch (type) {
    case HIPDNN_DATA_FLOAT: return "Float32Value";
    case HIPDNN_DATA_DOUBLE: return "Float64Value";
    case HIPDNN_DATA_HALF: return "Float16Value";
    case HIPDNN_DATA_BFLOAT16: return "BFloat16Value";
    case HIPDNN_DATA_INT32: return "Int32Value";
    case HIPDNN_DATA_INT64: return "Int64Value";
    case HIPDNN_DATA_BOOLEAN: return "BoolValue";
    default: return "Float8Value";  // every 8-bit type: the byte itself
  }
}

Json baked_value(const Tensor& tensor) {
  switch (tensor.dtype) {
    case HIPDNN_DATA_INT64: {  // not every one is a double
      std::int64_t number = 0;
      std::memcpy(&number, tensor.value->data(), sizeof number);
      return number;
    }
    case HIPDNN_DATA_INT32: return static_cast<std::int32_t>(tensor.scalar());
    case HIPDNN_DATA_BOOLEAN: return tensor.scalar() != 0;
    case HIPDNN_DATA_DOUBLE: return real_of_double(tensor.scalar());
    case HIPDNN_DATA_FLOAT:
    case HIPDNN_DATA_HALF:
    case HIPDNN_DATA_BFLOAT16: return real_of_float(tensor.scalar());
    default: return std::to_integer<int>(tensor.value->front());
  }
}

Json tensor_to_json(const Tensor& tensor) {
  Json json{{"uid", tensor.uid},         {"name", tensor.name},       {"data_type", data_type_name(tensor.dtype)},
            {"dims", tensor.dims},       {"strides", tensor.strides}, {"virtual", tensor.is_virtual},
            {"alignment", tensor.byte_alignment}, {"is_runtime_pass_by_value", tensor.is_runtime_value}};
  if (tensor.value) {
    json["value_type"] = value_type(tensor.dtype);
    json["value"] = baked_value(tensor);
  }
  return json;
}

}  // namespace

std::string graph_to_json(const Descriptor& graph_descriptor) {
  if (!graph_descriptor.has(HIPDNN_ATTR_OPERATIONGRAPH_OPS)) fail(HIPDNN_STATUS_BAD_PARAM, "the graph has no operations");
  const Graph graph = build_graph(graph_descriptor);
  Json json{{"name", graph.name},
            {"compute_data_type", data_type_name(graph.compute_type)},
            {"io_data_type", data_type_name(graph.io_type)},
            {"intermediate_data_type", data_type_name(graph.intermediate_type)},
            {"nodes", Json::array()},
            {"tensors", Json::array()}};
  if (graph_descriptor.has(HIPDNN_ATTR_OPERATIONGRAPH_PREFERRED_ENGINE_ID_EXT)) {
    json["preferred_engine_id"] = graph_descriptor.integer(HIPDNN_ATTR_OPERATIONGRAPH_PREFERRED_ENGINE_ID_EXT);
  }
  for (const Node& node : graph.nodes) json["nodes"].push_back(node_to_json(graph, node));
  for (const Tensor& tensor : graph.tensors) json["tensors"].push_back(tensor_to_json(tensor));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hipdnn_port
