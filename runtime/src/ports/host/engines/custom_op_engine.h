// The engine for operations that a user's library brings.
#pragma once

#include "frontend/engine.h"

namespace hipdnn_port {

/// HOST_CUSTOM_OP_ENGINE: one custom operation whose ID was registered through hipdnnHostRegisterCustomOp_ext.
const Engine& custom_op_engine();

}  // namespace hipdnn_port
