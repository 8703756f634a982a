// How long a plan takes, on scratch memory.
#pragma once

#include <optional>

#include "translate.h"

namespace hipdnn_cuda {

/// Microseconds of one execution (the median of several short series); nothing where the plan does not run or memory is short. Blocks.
/// Requires that the handle is on the default stream.
std::optional<double> time_plan(const CudnnDescriptor& plan, std::int64_t workspace_bytes, const CudnnGraph& graph,
                                const hipdnn_port::Graph& described, cudnnHandle_t handle);

/// The variant pack of a plan's graph. `pointers` is in the order of graph.uids; baked scalars are added.
CudnnDescriptor variant_pack(const CudnnGraph& graph, void* const* pointers, void* workspace);

}  // namespace hipdnn_cuda
