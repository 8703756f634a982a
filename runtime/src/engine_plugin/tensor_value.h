// Numbers that a graph bakes into its tensors.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "engine_plugin/flatbuffer.h"
#include "hipdnn_backend.h"

namespace hipdnn_plugin {

/// Bytes of one element, 0 for types of less than a byte.
std::size_t element_bytes(hipdnnDataType_t type);

/// The element's bytes where a tensor has a value; nothing where it has none. Throws NOT_APPLICABLE for a value that its type cannot hold.
std::optional<std::vector<std::byte>> read_value(const FlatTable& tensor, hipdnnDataType_t type);

}  // namespace hipdnn_plugin
