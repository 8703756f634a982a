// A graph of the front's as AMD's backend gives it to plugins.
#pragma once

#include <cstddef>
#include <vector>

#include "frontend/graph.h"

namespace plugin_backend {

/// The flatbuffer of a finalized graph. Source: third_party/hipdnn/graph_tables.json.
std::vector<std::byte> write_graph(const hipdnn_port::Graph& graph);

/// The configuration of an engine without knobs.
std::vector<std::byte> write_configuration(std::int64_t engine_id);

}  // namespace plugin_backend
