// A cuDNN execution plan for one graph, chosen among what cuDNN's heuristics offer.
#pragma once

#include <memory>

#include "backend/engine.h"

namespace hipdnn_cuda {

/// Throws std::runtime_error with the reasons where no engine of cuDNN builds a plan.
std::unique_ptr<hipdnn_port::Plan> build_cudnn_plan(const hipdnn_port::Graph& graph, const hipdnn_port::PlanOptions& options);

}  // namespace hipdnn_cuda
