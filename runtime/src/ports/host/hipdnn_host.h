/* What the host library offers beyond the C APIs of HIP and hipDNN and what every port does (frontend/port_extensions.h). The symbols are
   optional for a caller: look them up, do without them. */
#pragma once

#include "hip_runtime_abi.h"
#include "hipdnn_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Threads used by executions through this handle and by plans built for its graphs from now on. Default: the CPUs this process may use. */
hipdnnStatus_t hipdnnHostSetThreads_ext(hipdnnHandle_t handle, int threads);

/* Asks the engines for those graphs only that AMD's library gives to plugins of version 1.`minor` of its plugin interface: below 3, none whose
   tensors state another alignment than 16 bytes. Default: 3. Process-wide, thread-safe; for tests of what AMD's providers meet. */
hipdnnStatus_t hipdnnHostSetPluginApi_ext(int minor);

/* A tensor of a custom operation. Dims and strides (in elements) have `rank` entries; data is null until execution. */
typedef struct {
  hipdnnDataType_t data_type;
  int64_t rank;
  const int64_t* dims;
  const int64_t* strides;
  void* data;
} hipdnnHostTensor_ext_t;

/* One call of a custom operation: its tensors in the order of the descriptor's attributes, and the bytes of its DATA attribute. */
typedef struct {
  const hipdnnHostTensor_ext_t* inputs;
  size_t input_count;
  const hipdnnHostTensor_ext_t* outputs;
  size_t output_count;
  const char* attributes;
  size_t attribute_bytes;
} hipdnnHostCustomCall_ext_t;

/* What a custom operation does. `refuses` (may be null) returns why a call is not taken, or null; the text must stay valid until the calling
   thread's next call of it. `execute` returns 0 on success, uses at most `threads` threads, and may run on several threads at once. No
   exception may leave either. */
typedef struct {
  const char* (*refuses)(const hipdnnHostCustomCall_ext_t* call, void* user);
  int (*execute)(const hipdnnHostCustomCall_ext_t* call, int threads, void* user);
  void* user;
} hipdnnHostCustomOp_ext_t;

/* Makes graphs of one custom operation with this ID run here: HOST_CUSTOM_OP_ENGINE. Replaces an earlier operation of that ID; null takes it
   away. Plans built before keep the operation they were built with. Process-wide, thread-safe. */
hipdnnStatus_t hipdnnHostRegisterCustomOp_ext(const char* id, const hipdnnHostCustomOp_ext_t* operation);

/* Threads used by launches of a module's function from now on. Default: the CPUs this process may use. */
hipError_t hipdnnHostSetModuleThreads_ext(hipModule_t module, int threads);

#ifdef __cplusplus
}
#endif
