// The engine for pointwise graphs with reductions that come back to the rows they were taken from.
#pragma once

#include "frontend/engine.h"

namespace hipdnn_port {

/// HOST_ROWWISE_ENGINE. A graph with one output may write it over an input of the same dims, strides and type: within a tile every read
/// comes before the write, and tiles do not overlap. Any other sharing of memory between operands is the caller's error.
const Engine& rowwise_engine();

/// Uids of the tensors that need a pointer, in graph order: how row programs number their pointers.
std::vector<std::int64_t> pointer_uids(const Graph& graph);

/// Elements wanted in a tile so that its intermediates stay in the first-level cache and `threads` threads get equal shares.
struct RowProgram;
std::int64_t wanted_tile_elements(const RowProgram& program, int threads);

}  // namespace hipdnn_port
