// An operation graph in hipDNN's JSON form, for people and for other tools.
#pragma once

#include <string>

#include "descriptor.h"

namespace hipdnn_port {

/// Text of the graph as set so far, finalized or not. BAD_PARAM where the operations do not form one graph.
std::string graph_to_json(const Descriptor& graph_descriptor);

}  // namespace hipdnn_port
