// Look-ups in the table generated from enums.json.
#include "names.h"

#include <algorithm>
#include <cctype>
#include <span>

#include "hipdnn_names_table.h"

namespace hipdnn_port {
namespace {

using Table = std::span<const names::Name>;

std::optional<std::string_view> look_up(Table table, int value) {
  const auto found = std::ranges::lower_bound(table, value, {}, &names::Name::value);
  if (found == table.end() || found->value != value) return std::nullopt;
  return found->name;
}

std::string name_or(Table table, int value, std::string_view kind) {
  if (const auto name = look_up(table, value)) return std::string(*name);
  return std::string(kind) + " " + std::to_string(value);
}

Table enumerators(hipdnnBackendAttributeType_t type) {
  switch (type) {
    case HIPDNN_TYPE_DATA_TYPE: return names::hipdnnDataType_t_names;
    case HIPDNN_TYPE_HEUR_MODE: return names::hipdnnBackendHeurMode_t_names;
    case HIPDNN_TYPE_NORM_FWD_PHASE: return names::hipdnnNormFwdPhase_t_names;
    case HIPDNN_TYPE_CONVOLUTION_MODE: return names::hipdnnConvolutionMode_t_names;
    case HIPDNN_TYPE_POINTWISE_MODE: return names::hipdnnPointwiseMode_t_names;
    case HIPDNN_TYPE_DIAGONAL_ALIGNMENT_EXT: return names::hipdnnDiagonalAlignment_t_names;
    case HIPDNN_TYPE_ATTENTION_IMPLEMENTATION_EXT: return names::hipdnnAttentionImplementation_t_names;
    case HIPDNN_TYPE_REDUCTION_OPERATOR_TYPE: return names::hipdnnReduceTensorOp_t_names;
    case HIPDNN_TYPE_RESAMPLE_MODE: return names::hipdnnResampleMode_t_names;
    case HIPDNN_TYPE_PADDING_MODE: return names::hipdnnPaddingMode_t_names;
    case HIPDNN_TYPE_OPERATION_TYPE_EXT: return names::hipdnnOperationType_ext_t_names;
    default: return {};
  }
}

}  // namespace

std::string attribute_name(int value) {
  if (const auto name = look_up(names::hipdnnMlirExtension_t_names, value)) return std::string(*name);
  return name_or(names::hipdnnBackendAttributeName_t_names, value, "attribute");
}

std::string type_name(int value) { return name_or(names::hipdnnBackendAttributeType_t_names, value, "type"); }

std::string descriptor_name(int value) { return name_or(names::hipdnnBackendDescriptorType_t_names, value, "descriptor type"); }

std::string_view status_name(int value) { return look_up(names::hipdnnStatus_t_names, value).value_or(""); }

std::string data_type_name(int value) {
  std::string name = name_or(names::hipdnnDataType_t_names, value, "data type");
  constexpr std::string_view prefix = "HIPDNN_DATA_";
  if (!name.starts_with(prefix)) return name;
  name.erase(0, prefix.size());
  if (name.ends_with("_EXT")) name.resize(name.size() - 4);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

std::optional<std::string_view> enumerator_name(hipdnnBackendAttributeType_t type, int value) { return look_up(enumerators(type), value); }

bool is_enumeration(hipdnnBackendAttributeType_t type) { return !enumerators(type).empty(); }

}  // namespace hipdnn_port
