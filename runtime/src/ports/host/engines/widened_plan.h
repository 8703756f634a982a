// Graphs of floats of 16 and 8 bits for an engine that has only float32 on this machine: computed in float32 between conversions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "frontend/engine.h"

namespace hipdnn_port {

/// Is any tensor of the graph a float of 16 or 8 bits?
bool has_narrow_tensors(const Graph& graph);

/// Is a value between nodes a float of 8 bits? That is meant to round: no engine may leave it out.
bool rounds_inside(const Graph& graph);

/// The same graph with float32 in place of narrower floats. A widened tensor is stored densely, its dimensions in memory in the order
/// they had; dimensions that repeat one element still do. Values between the nodes are not rounded to 16 bits.
Graph widened(const Graph& graph);

/// Why an operand of the graph cannot be converted, or nothing where all can.
std::optional<std::string> refuses_conversions(const Graph& graph);

/// Builds the plan of the widened graph.
using WidePlanBuild = std::function<std::unique_ptr<Plan>(const Graph& widened, const PlanOptions& options)>;

/// A plan of `graph` that runs one of the widened graph. Operands are converted through the workspace at each execution, constants once,
/// now, into memory of the plan. Requires refuses_conversions to let the graph pass; throws what `build` throws.
std::unique_ptr<Plan> build_widened(const Graph& graph, const PlanOptions& options, const WidePlanBuild& build);

}  // namespace hipdnn_port
