// The engine for one reduction over any axes, with pointwise nodes before and after it.
#pragma once

#include "../engine.h"

namespace hipdnn_host {

/// HOST_REDUCTION_ENGINE.
const Engine& reduction_engine();

}  // namespace hipdnn_host
