// Names of the ABI's numeric values, for messages and for checking that a value exists.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hipdnn_backend.h"

namespace hipdnn_port {

/// "HIPDNN_ATTR_TENSOR_DIMENSIONS", or "attribute 12345" for a value outside the list.
std::string attribute_name(int value);
/// "HIPDNN_TYPE_INT64", or "type 99".
std::string type_name(int value);
/// "HIPDNN_BACKEND_TENSOR_DESCRIPTOR", or "descriptor type 99".
std::string descriptor_name(int value);
/// "HIPDNN_STATUS_SUCCESS"; empty for a value outside the list. Points to static text.
std::string_view status_name(int value);
/// "half", as in serialized graphs; "data type 99" for a value outside the list.
std::string data_type_name(int value);

/// The name of `value` among the enumerators an attribute of `type` may hold; nothing where `type` is no enumeration or the value
/// does not exist.
std::optional<std::string_view> enumerator_name(hipdnnBackendAttributeType_t type, int value);
/// True where values of `type` are enumerators.
bool is_enumeration(hipdnnBackendAttributeType_t type);

}  // namespace hipdnn_port
