/* What each of this project's ports offers beyond the C APIs of HIP and hipDNN. The symbols are optional for a caller: look them up, do without
   them. */
#pragma once

#include <stddef.h>

#include "hip_runtime_abi.h"
#include "hipdnn_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One line on a finalized execution plan: the primitive or kernel chosen. Cut to capacity, always terminated. */
hipdnnStatus_t hipdnnPortDescribePlan_ext(hipdnnBackendDescriptor_t plan, char* text, size_t capacity);

/* Why the calling thread's last hipModule call failed; empty where it did not. Valid until the thread's next one. */
const char* hipdnnPortLastKernelError_ext(void);

/* The instruction set of a device, as targets are named: "sm_90". Only ports of GPUs have it. */
hipError_t hipdnnPortArchitecture_ext(int device, char* text, size_t capacity);

#ifdef __cplusplus
}
#endif
