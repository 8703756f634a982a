/* What this library offers beyond hipDNN's backend C API. Both symbols are optional for a caller: look them up, do without them. */
#pragma once

#include "hipdnn_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Threads used by executions through this handle and by plans built for its graphs from now on. Default: the CPUs this process may use. */
hipdnnStatus_t hipdnnHostSetThreads_ext(hipdnnHandle_t handle, int threads);

/* One line on a finalized execution plan: the primitive or kernel chosen. Cut to capacity, always terminated. */
hipdnnStatus_t hipdnnHostDescribePlan_ext(hipdnnBackendDescriptor_t plan, char* text, size_t capacity);

#ifdef __cplusplus
}
#endif
