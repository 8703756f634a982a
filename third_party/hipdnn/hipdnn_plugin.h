/* hipDNN's interface of engine plugins, declared by hand: what a plugin exports, and what AMD's backend calls.
 *
 * Source: the public description of ROCm/rocm-libraries projects/hipdnn, plugin_sdk/include/hipdnn_plugin_sdk: EnginePluginApi.h at commit
 * 0574176a, PluginApiDataTypes.h at cc0f8101, PluginVersionConstants.hpp, the log callback of data_sdk CallbackTypes.h at f6b59e29, and
 * docs/rfcs on the serialization of execution plans; all of 2026. The bytes of graphs, details and configurations: graph_tables.json.
 *
 * Buffers that a plugin gives away are freed by the plugin's own function. Functions of different handles may run at the same time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hipdnn_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  HIPDNN_PLUGIN_STATUS_SUCCESS = 0,
  HIPDNN_PLUGIN_STATUS_BAD_PARAM = 1,
  HIPDNN_PLUGIN_STATUS_INVALID_VALUE = 2,
  HIPDNN_PLUGIN_STATUS_INTERNAL_ERROR = 3,
  HIPDNN_PLUGIN_STATUS_ALLOC_FAILED = 4,
  HIPDNN_PLUGIN_STATUS_NOT_APPLICABLE = 5, /* a correct call for which the plugin has nothing */
  HIPDNN_PLUGIN_STATUS_NOT_INITIALIZED = 6,
} hipdnnPluginStatus_t;

typedef enum {
  HIPDNN_PLUGIN_TYPE_UNSPECIFIED = 0,
  HIPDNN_PLUGIN_TYPE_ENGINE = 1,
  HIPDNN_PLUGIN_TYPE_HEURISTIC = 2,
} hipdnnPluginType_t;

/* What an engine says of itself in its details. */
enum {
  HIPDNN_BEHAVIOR_NOTE_SUPPORTS_EXECUTION_PLAN_SERIALIZATION = 4,
};

/* Bytes; for a flatbuffer the whole buffer. */
typedef struct {
  const void* ptr;
  size_t size;
} hipdnnPluginConstData_t;

/* The memory of the tensor with this uid. */
typedef struct {
  int64_t uid;
  void* ptr;
} hipdnnPluginDeviceBuffer_t;

typedef struct HipdnnEnginePluginHandle* hipdnnEnginePluginHandle_t;
typedef struct HipdnnEnginePluginExecutionContext* hipdnnEnginePluginExecutionContext_t;
typedef void (*hipdnnCallback_t)(hipdnnSeverity_t severity, const char* message);

/* Of every plugin. Texts stay valid while the library is loaded, the error until the calling thread's next call. */
hipdnnPluginStatus_t hipdnnPluginGetName(const char** name);
hipdnnPluginStatus_t hipdnnPluginGetVersion(const char** version);
hipdnnPluginStatus_t hipdnnPluginGetApiVersion(const char** version);
hipdnnPluginStatus_t hipdnnPluginGetType(hipdnnPluginType_t* type);
void hipdnnPluginGetLastErrorString(const char** error);
hipdnnPluginStatus_t hipdnnPluginSetLoggingCallback(hipdnnCallback_t callback);
hipdnnPluginStatus_t hipdnnPluginSetLogLevel(hipdnnSeverity_t level); /* optional */

/* Engines. With `capacity` 0 both listings only count; the second one's count may exceed what it wrote. */
hipdnnPluginStatus_t hipdnnEnginePluginGetAllEngineIds(int64_t* ids, uint32_t capacity, uint32_t* count);
hipdnnPluginStatus_t hipdnnEnginePluginGetEngineName(int64_t id, const char** name); /* optional, since 1.4.0 */
hipdnnPluginStatus_t hipdnnEnginePluginGetApplicableEngineIds(hipdnnEnginePluginHandle_t handle, const hipdnnPluginConstData_t* graph,
                                                              int64_t* ids, uint32_t capacity, uint32_t* count);
hipdnnPluginStatus_t hipdnnEnginePluginGetEngineDetails(hipdnnEnginePluginHandle_t handle, int64_t id, const hipdnnPluginConstData_t* graph,
                                                        hipdnnPluginConstData_t* details);
hipdnnPluginStatus_t hipdnnEnginePluginDestroyEngineDetails(hipdnnEnginePluginHandle_t handle, hipdnnPluginConstData_t* details);

hipdnnPluginStatus_t hipdnnEnginePluginCreate(hipdnnEnginePluginHandle_t* handle);
hipdnnPluginStatus_t hipdnnEnginePluginDestroy(hipdnnEnginePluginHandle_t handle);
hipdnnPluginStatus_t hipdnnEnginePluginSetStream(hipdnnEnginePluginHandle_t handle, hipStream_t stream);

/* Plans. A context keeps what it needs of the two buffers. */
hipdnnPluginStatus_t hipdnnEnginePluginGetWorkspaceSize(hipdnnEnginePluginHandle_t handle, const hipdnnPluginConstData_t* configuration,
                                                        const hipdnnPluginConstData_t* graph, size_t* bytes);
hipdnnPluginStatus_t hipdnnEnginePluginCreateExecutionContext(hipdnnEnginePluginHandle_t handle, const hipdnnPluginConstData_t* configuration,
                                                              const hipdnnPluginConstData_t* graph,
                                                              hipdnnEnginePluginExecutionContext_t* context);
hipdnnPluginStatus_t hipdnnEnginePluginDestroyExecutionContext(hipdnnEnginePluginHandle_t handle, hipdnnEnginePluginExecutionContext_t context);
hipdnnPluginStatus_t hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(hipdnnEnginePluginHandle_t handle,
                                                                            hipdnnEnginePluginExecutionContext_t context, size_t* bytes);
hipdnnPluginStatus_t hipdnnEnginePluginExecuteOpGraph(hipdnnEnginePluginHandle_t handle, hipdnnEnginePluginExecutionContext_t context,
                                                      void* workspace, const hipdnnPluginDeviceBuffer_t* buffers, uint32_t count);
/* Optional, since 1.1.0: the same with other dims and strides for some tensors, `lengths[i]` of each. */
hipdnnPluginStatus_t hipdnnEnginePluginExecuteOpGraphWithOverrides(hipdnnEnginePluginHandle_t handle, hipdnnEnginePluginExecutionContext_t context,
                                                                   void* workspace, const hipdnnPluginDeviceBuffer_t* buffers, uint32_t count,
                                                                   uint32_t override_count, const int64_t* uids, const uint32_t* lengths,
                                                                   const int64_t* const* dims, const int64_t* const* strides);

/* Optional. Newer backends save by the function that also says the engine. */
hipdnnPluginStatus_t hipdnnEnginePluginSerializeExecutionContext(hipdnnEnginePluginHandle_t handle,
                                                                 hipdnnEnginePluginExecutionContext_t context, hipdnnPluginConstData_t* bytes);
hipdnnPluginStatus_t hipdnnEnginePluginSerializeExecutionContextWithEngineId(hipdnnEnginePluginHandle_t handle, int64_t id,
                                                                             hipdnnEnginePluginExecutionContext_t context,
                                                                             hipdnnPluginConstData_t* bytes);
hipdnnPluginStatus_t hipdnnEnginePluginDestroySerializedExecutionContext(hipdnnEnginePluginHandle_t handle, hipdnnPluginConstData_t* bytes);
hipdnnPluginStatus_t hipdnnEnginePluginCreateExecutionContextFromSerialized(hipdnnEnginePluginHandle_t handle,
                                                                            const hipdnnPluginConstData_t* bytes,
                                                                            hipdnnEnginePluginExecutionContext_t* context);

#ifdef __cplusplus
}
#endif
