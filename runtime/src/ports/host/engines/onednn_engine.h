// The engine of convolutions, matrix products, pooling and norms: every graph becomes oneDNN primitives with fused epilogues.
#pragma once

#include "frontend/engine.h"

namespace hipdnn_port {

/// The one instance, stateless and usable from any thread.
const Engine& onednn_engine();

}  // namespace hipdnn_port
