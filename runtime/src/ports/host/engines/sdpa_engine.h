// The engine for scaled dot product attention.
#pragma once

#include "frontend/engine.h"

namespace hipdnn_port {

/// HOST_SDPA_ENGINE: one attention forward node. Scores are never stored whole: a block of keys at a time, with the softmax carried along.
/// Inputs of 16 bits are widened block by block; arithmetic is float32. A query that attends no key gets 0, as in PyTorch.
const Engine& sdpa_engine();

}  // namespace hipdnn_port
