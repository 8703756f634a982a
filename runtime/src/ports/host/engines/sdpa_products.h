// Attention of 16-bit floats through oneDNN's matrix products, which use the CPU's matrix unit where it has one.
#pragma once

#include <memory>

#include "frontend/engine.h"
#include "sdpa_problem.h"

namespace hipdnn_port {

/// A plan that computes rows of one head at a time as product, softmax and product, scores in float32 in each thread's workspace; or null
/// where oneDNN has no such product on this CPU or the problem asks for what these steps do not give (lengths, statistics, a soft cap, a sink, few queries).
std::unique_ptr<Plan> build_sdpa_products(const SdpaProblem& problem, int threads);

}  // namespace hipdnn_port
