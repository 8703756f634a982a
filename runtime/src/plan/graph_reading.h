// An executable's descriptors read as a graph.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "program/program.h"

namespace hipdnn_rt {

inline bool is_tensor(const DescriptorSpec& spec) { return spec.type == HIPDNN_BACKEND_TENSOR_DESCRIPTOR; }
/// Not a number that is baked into the graph.
inline bool has_pointer(const DescriptorSpec& tensor) { return find_attribute(tensor, HIPDNN_ATTR_TENSOR_VALUE_EXT) == nullptr; }
std::int64_t uid_of(const DescriptorSpec& tensor);
hipdnnDataType_t dtype_of(const DescriptorSpec& tensor);
std::map<std::int64_t, hipdnnDataType_t> dtypes_of(const Executable& executable);

/// Positions of the graph's operations among the descriptors, in order.
std::vector<std::uint32_t> operations_of(const Executable& executable);
/// Positions of a descriptor and of all that it refers to, in order.
std::set<std::uint32_t> with_references(const Executable& executable, std::uint32_t at);
/// Positions of the tensors that an operation names, without baked numbers.
std::vector<std::uint32_t> tensors_of(const Executable& executable, std::uint32_t operation);
/// Uids of the operands that are read; an operation writes what it names and nobody has written before.
std::set<std::int64_t> inputs_of(const Executable& executable);

}  // namespace hipdnn_rt
