// Norms in cuDNN's terms.
#pragma once

#include <optional>
#include <string>

#include "frontend/graph.h"

namespace hipdnn_cuda {

/// Batch norms of inference. cuDNN has them as pointwise operations alone.
bool has_batch_norms(const hipdnn_port::Graph& graph);
/// The graph with (x - mean) * deviation * scale + bias in the place of each, where the deviation is 1 / sqrt(variance + epsilon), or given.
/// Requires why_not_normalized to have no reason.
hipdnn_port::Graph with_batch_norms_written_out(const hipdnn_port::Graph& graph);

/// A layer norm or an RMS norm, alone.
bool is_row_norm(const hipdnn_port::Graph& graph);
/// The graph with x and y as (rows, columns, 1, 1), scale and bias as (1, columns, 1, 1): cuDNN normalizes channels that lie along memory.
/// Requires why_not_normalized to have no reason.
hipdnn_port::Graph with_rows_as_channels(const hipdnn_port::Graph& graph);

/// Why a norm of the graph is not translated; nothing where all are, or there is none.
std::optional<std::string> why_not_normalized(const hipdnn_port::Graph& graph);

}  // namespace hipdnn_cuda
