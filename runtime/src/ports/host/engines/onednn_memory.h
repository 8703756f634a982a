// How tensors of a graph look to oneDNN: data types, memory descriptors and layouts.
#pragma once

#include <cstdint>
#include <optional>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "frontend/graph.h"

namespace hipdnn_port::onednn {

using Dims = std::vector<std::int64_t>;

/// The process's CPU engine of oneDNN; immutable, shared by all plans.
const dnnl::engine& cpu_engine();

/// Has this machine such instructions, and may oneDNN use them (ONEDNN_MAX_CPU_ISA)?
bool isa_includes(dnnl_cpu_isa_t isa);

/// Why tensors of this type cannot be given to oneDNN on this machine, or nothing where they can.
std::optional<std::string> refuses_dtype(const Tensor& tensor);

/// Requires a type that refuses_dtype lets pass, or integers of 8 bits or int32.
dnnl::memory::data_type data_type_of(hipdnnDataType_t type);

/// Why oneDNN cannot read or write a tensor of these dims and strides, whatever its type.
std::optional<std::string> refuses_layout(const Tensor& tensor);

/// Why oneDNN cannot read or write this tensor: its type, or strides of a broadcast, reversed or overlapping view. Strides of virtual
/// tensors do not matter.
std::optional<std::string> refuses_tensor(const Tensor& tensor);

/// The tensor with ones put before its dimensions until it has `rank`, and dimensions that repeat one element (stride 0) made one.
Tensor broadcast_view(const Tensor& tensor, std::size_t rank);

/// Strides of a C-order array.
Dims plain_strides(const Dims& dims);
/// Strides of n c spatial... stored with the channels innermost.
Dims channels_last_strides(const Dims& dims);

/// Do the strides agree wherever they matter, that is on dimensions longer than one?
bool same_layout(const Dims& dims, const Dims& a, const Dims& b);

/// Strides with those of one-element dimensions, which carry no meaning, replaced so that a dense tensor has the exact strides of
/// the channels-last (preferred) or plain layout it is stored in. `prefer_plain` decides for tensors that are both.
Dims normalized_strides(const Dims& dims, const Dims& strides, bool prefer_plain);

/// Descriptor of the tensor as stored. Throws dnnl::error where oneDNN cannot express the strides.
dnnl::memory::desc memory_of(const Tensor& tensor, bool prefer_plain = false);
dnnl::memory::desc memory_of(const Dims& dims, dnnl::memory::data_type type, const Dims& strides);

}  // namespace hipdnn_port::onednn
