/* What this library offers beyond the C APIs of HIP and hipDNN. The symbols are optional for a caller: look them up, do without them. */
#pragma once

#include "hip_runtime_abi.h"
#include "hipdnn_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Threads used by executions through this handle and by plans built for its graphs from now on. Default: the CPUs this process may use. */
hipdnnStatus_t hipdnnHostSetThreads_ext(hipdnnHandle_t handle, int threads);

/* One line on a finalized execution plan: the primitive or kernel chosen. Cut to capacity, always terminated. */
hipdnnStatus_t hipdnnHostDescribePlan_ext(hipdnnBackendDescriptor_t plan, char* text, size_t capacity);

/* Why the calling thread's last hipModule call failed; empty where it did not. Valid until the thread's next one. */
const char* hipdnnHostLastKernelError_ext(void);

/* Threads used by launches of a module's function from now on. Default: the CPUs this process may use. */
hipError_t hipdnnHostSetModuleThreads_ext(hipModule_t module, int threads);

#ifdef __cplusplus
}
#endif
