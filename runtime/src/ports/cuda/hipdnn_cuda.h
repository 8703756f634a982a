/* What the cuDNN port offers beyond the C APIs of HIP and hipDNN and what every port does (backend/port_extensions.h). The symbols are optional for
   a caller: look them up, do without them. */
#pragma once

#include "hipdnn_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether products of f32 may round their operands to TF32, in plans for this handle's graphs from now on. Default: no. */
hipdnnStatus_t hipdnnCudaAllowTf32_ext(hipdnnHandle_t handle, int is_allowed);

#ifdef __cplusplus
}
#endif
