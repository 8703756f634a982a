/* What the cuDNN port offers beyond the C APIs of HIP and hipDNN and what every port does (frontend/port_extensions.h). The symbols are optional for
   a caller: look them up, do without them. */
#pragma once

#include "hip_runtime_abi.h"
#include "hipdnn_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether matmuls and convolutions of f32 may round their operands to TF32, in plans for this handle's graphs from now on. Default: no. */
hipdnnStatus_t hipdnnCudaAllowTf32_ext(hipdnnHandle_t handle, int is_allowed);

/* hipModuleLaunchKernel for a kernel that waits itself for what is in front of it, before it touches what that may have written
   (griddepcontrol.wait): it may be launched while that still runs. */
hipError_t hipdnnCudaLaunchWaitingKernel_ext(hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                             unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_memory_bytes,
                                             hipStream_t stream, void** kernel_params, void** extra);

#ifdef __cplusplus
}
#endif
