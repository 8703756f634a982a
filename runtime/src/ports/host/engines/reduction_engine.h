// The engine for one reduction over any axes, with pointwise nodes before and after it.
#pragma once

#include "frontend/engine.h"

namespace hipdnn_port {

/// HOST_REDUCTION_ENGINE.
const Engine& reduction_engine();

}  // namespace hipdnn_port
