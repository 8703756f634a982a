/* The hipDNN backend C ABI, declared by hand for libraries that are opened at run time.
 *
 * Source: the public description of ROCm/rocm-libraries projects/hipdnn (backend headers at commit
 * 969801db, mid-2026). Numeric values: enums.json beside this file. Only what this project calls or
 * implements is declared. Status values are a 32-bit int across the ABI.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hipdnn_backend_enums.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ihipStream_t* hipStream_t;
typedef struct hipdnnHandle* hipdnnHandle_t;
typedef struct hipdnnBackendDescriptor* hipdnnBackendDescriptor_t;
typedef void (*hipdnnUserLogCallback_t)(void* user, hipdnnSeverity_t severity, const char* message);

hipdnnStatus_t hipdnnCreate(hipdnnHandle_t* handle);
hipdnnStatus_t hipdnnDestroy(hipdnnHandle_t handle);
hipdnnStatus_t hipdnnSetStream(hipdnnHandle_t handle, hipStream_t stream);
hipdnnStatus_t hipdnnGetStream(hipdnnHandle_t handle, hipStream_t* stream);

hipdnnStatus_t hipdnnBackendCreateDescriptor(hipdnnBackendDescriptorType_t type, hipdnnBackendDescriptor_t* descriptor);
hipdnnStatus_t hipdnnBackendDestroyDescriptor(hipdnnBackendDescriptor_t descriptor);
hipdnnStatus_t hipdnnBackendFinalize(hipdnnBackendDescriptor_t descriptor);
hipdnnStatus_t hipdnnBackendSetAttribute(hipdnnBackendDescriptor_t descriptor, hipdnnBackendAttributeName_t name,
                                         hipdnnBackendAttributeType_t type, int64_t count, const void* data);
hipdnnStatus_t hipdnnBackendGetAttribute(hipdnnBackendDescriptor_t descriptor, hipdnnBackendAttributeName_t name,
                                         hipdnnBackendAttributeType_t type, int64_t requested, int64_t* count, void* data);
hipdnnStatus_t hipdnnBackendExecute(hipdnnHandle_t handle, hipdnnBackendDescriptor_t plan, hipdnnBackendDescriptor_t variant_pack);

const char* hipdnnGetErrorString(hipdnnStatus_t status);
void hipdnnGetLastErrorString(char* message, size_t capacity);
void hipdnnPeekLastErrorString_ext(char* message, size_t capacity);

hipdnnStatus_t hipdnnGetEngineCount_ext(hipdnnHandle_t handle, size_t* count);
hipdnnStatus_t hipdnnGetEngineInfo_ext(hipdnnHandle_t handle, size_t index, int64_t* id, char* name, size_t* name_length, char* plugin,
                                       size_t* plugin_length, char* version, size_t* version_length, char* type, size_t* type_length);
hipdnnStatus_t hipdnnGetEngineIdByName_ext(hipdnnHandle_t handle, const char* name, int64_t* id);
hipdnnStatus_t hipdnnGetHeuristicPolicyCount_ext(hipdnnHandle_t handle, size_t* count);
hipdnnStatus_t hipdnnGetHeuristicPolicyInfo_ext(hipdnnHandle_t handle, size_t index, int64_t* id, char* name, size_t* name_length, char* plugin,
                                                size_t* plugin_length, char* plugin_version, size_t* plugin_version_length, char* api_version,
                                                size_t* api_version_length);
hipdnnStatus_t hipdnnSetEnginePluginPaths_ext(size_t count, const char* const* paths, hipdnnPluginLoadingMode_ext_t mode);
hipdnnStatus_t hipdnnGetLoadedEnginePluginPaths_ext(hipdnnHandle_t handle, size_t* count, char** paths, size_t* most_length);

hipdnnStatus_t hipdnnBackendGetSerializedJsonGraph_ext(hipdnnBackendDescriptor_t graph, size_t capacity, size_t* size, char* json);
hipdnnStatus_t hipdnnBackendGetSerializedExecutionPlan_ext(hipdnnBackendDescriptor_t plan, size_t capacity, size_t* size, uint8_t* bytes);
hipdnnStatus_t hipdnnBackendCreateAndDeserializeExecutionPlan_ext(hipdnnHandle_t handle, hipdnnBackendDescriptor_t* plan,
                                                                  const uint8_t* bytes, size_t size);

hipdnnStatus_t hipdnnSetUserLogCallback_ext(hipdnnUserLogCallback_t callback, hipdnnSeverity_t minimum, hipdnnLogCallbackMode_t mode,
                                            void* user);
hipdnnStatus_t hipdnnBackendSetGlobalLogLevel_ext(hipdnnSeverity_t severity);
hipdnnStatus_t hipdnnBackendGetGlobalLogLevel_ext(hipdnnSeverity_t* severity);
hipdnnStatus_t hipdnnGetVersion_ext(const char** version);
const char* hipdnnVersionString_ext(void);

#ifdef __cplusplus
}
#endif
