// The version of AMD's plugin interface that the engines are treated as having.
#pragma once

#include <optional>
#include <string>

#include "graph.h"

namespace hipdnn_port {

/// Treat all engines as those of plugins of version 1.`minor` from now on; at first, of the newest. Any thread may.
void set_plugin_api(int minor);

/// Why AMD's library asks no such plugin for a graph, or nothing.
std::optional<std::string> withheld_from_plugins(const Graph& graph);

}  // namespace hipdnn_port
