// The HIP runtime functions this project calls, on CUDA's driver API. Streams, events, modules and graphs are CUDA's own objects under HIP's
// names; error numbers are CUDA's, which HIP's mirror.
#include <cstdint>
#include <cstdio>

#include "driver.h"
#include "frontend/export.h"
#include "frontend/port_extensions.h"
#include "hip_runtime_abi.h"

namespace {

using hipdnn_cuda::bind_device;
using hipdnn_cuda::Driver;
using hipdnn_cuda::driver;

CUdeviceptr device_pointer(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }
CUstream cuda(hipStream_t stream) { return reinterpret_cast<CUstream>(stream); }
CUevent cuda(hipEvent_t event) { return reinterpret_cast<CUevent>(event); }
CUgraph cuda(hipGraph_t graph) { return reinterpret_cast<CUgraph>(graph); }
CUgraphExec cuda(hipGraphExec_t graph) { return reinterpret_cast<CUgraphExec>(graph); }

CUcopySide side_of(const void* pointer, std::size_t pitch, bool is_host, bool is_device) {
  CUcopySide side{};
  side.memory_type = is_host ? CU_MEMORYTYPE_HOST : is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
  side.host = const_cast<void*>(pointer);  // the driver has one structure for what it reads and what it writes
  side.device = device_pointer(pointer);
  side.pitch = pitch;
  return side;
}

/// Runs `call` with the driver on the calling thread's device.
template <class Call>
hipError_t on_device(Call&& call) {
  if (const CUresult status = bind_device(); status != CUDA_SUCCESS) return status;
  return call(*driver());
}

}  // namespace

extern "C" {

HIPDNN_PORT_EXPORT hipError_t hipInit(unsigned int flags) {
  if (flags != 0) return hipErrorInvalidValue;
  return driver() == nullptr ? hipErrorNotInitialized : hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipGetDeviceCount(int* count) {
  if (count == nullptr) return hipErrorInvalidValue;
  *count = 0;
  if (driver() == nullptr) {
    hipdnn_cuda::set_last_failure(hipdnn_cuda::driver_failure());
    return hipErrorNotInitialized;
  }
  return driver()->device_get_count(count);
}

HIPDNN_PORT_EXPORT hipError_t hipSetDevice(int device) { return hipdnn_cuda::choose_device(device); }

HIPDNN_PORT_EXPORT hipError_t hipGetDevice(int* device) {
  if (device == nullptr) return hipErrorInvalidValue;
  *device = hipdnn_cuda::chosen_device();
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipDeviceGetName(char* name, int capacity, int device) {
  if (name == nullptr || capacity < 1) return hipErrorInvalidValue;
  if (driver() == nullptr) return hipErrorNotInitialized;
  CUdevice found = 0;
  const CUresult status = driver()->device_get(&found, device);
  return status == CUDA_SUCCESS ? driver()->device_get_name(name, capacity, found) : status;
}

HIPDNN_PORT_EXPORT hipError_t hipRuntimeGetVersion(int* version) {
  if (version == nullptr) return hipErrorInvalidValue;
  return driver() == nullptr ? hipErrorNotInitialized : driver()->driver_get_version(version);
}

HIPDNN_PORT_EXPORT const char* hipGetErrorName(hipError_t error) {
  const char* name = nullptr;
  if (driver() != nullptr) driver()->get_error_name(error, &name);
  return name != nullptr ? name : "hipErrorUnknown";
}

HIPDNN_PORT_EXPORT const char* hipGetErrorString(hipError_t error) {
  if (driver() == nullptr) return hipdnn_cuda::driver_failure().c_str();
  const char* text = nullptr;
  driver()->get_error_string(error, &text);
  return text != nullptr ? text : "unknown error";
}

HIPDNN_PORT_EXPORT hipError_t hipMalloc(void** pointer, size_t bytes) {
  if (pointer == nullptr) return hipErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return hipSuccess;
  return on_device([&](const Driver& api) {
    CUdeviceptr made = 0;
    const CUresult status = api.mem_alloc(&made, bytes);
    *pointer = reinterpret_cast<void*>(static_cast<std::uintptr_t>(made));
    return status;
  });
}

HIPDNN_PORT_EXPORT hipError_t hipFree(void* pointer) {
  if (pointer == nullptr) return hipSuccess;
  return on_device([&](const Driver& api) { return api.mem_free(device_pointer(pointer)); });
}

HIPDNN_PORT_EXPORT hipError_t hipMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  if (free_bytes == nullptr || total_bytes == nullptr) return hipErrorInvalidValue;
  return on_device([&](const Driver& api) { return api.mem_get_info(free_bytes, total_bytes); });
}

HIPDNN_PORT_EXPORT hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned int flags) {
  if (pointer == nullptr || flags != hipHostMallocDefault) return hipErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return hipSuccess;
  return on_device([&](const Driver& api) { return api.mem_host_alloc(pointer, bytes, 0); });
}

HIPDNN_PORT_EXPORT hipError_t hipHostFree(void* pointer) {
  if (pointer == nullptr) return hipSuccess;
  return on_device([&](const Driver& api) { return api.mem_free_host(pointer); });
}

// Addresses are unified: the driver sees itself which side a pointer belongs to.
HIPDNN_PORT_EXPORT hipError_t hipMemcpyAsync(void* destination, const void* source, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  if (kind < hipMemcpyHostToHost || kind > hipMemcpyDefault) return hipErrorInvalidValue;
  if (bytes == 0) return hipSuccess;
  return on_device([&](const Driver& api) { return api.memcpy_async(device_pointer(destination), device_pointer(source), bytes, cuda(stream)); });
}

HIPDNN_PORT_EXPORT hipError_t hipMemcpy2DAsync(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                                               size_t width, size_t height, hipMemcpyKind kind, hipStream_t stream) {
  if (kind < hipMemcpyHostToHost || kind > hipMemcpyDefault) return hipErrorInvalidValue;
  CUDA_MEMCPY2D copy{};
  copy.source = side_of(source, source_pitch, kind == hipMemcpyHostToHost || kind == hipMemcpyHostToDevice,
                        kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice);
  copy.destination = side_of(destination, destination_pitch, kind == hipMemcpyHostToHost || kind == hipMemcpyDeviceToHost,
                             kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice);
  copy.width_in_bytes = width;
  copy.height = height;
  return on_device([&](const Driver& api) { return api.memcpy_2d_async(&copy, cuda(stream)); });
}

HIPDNN_PORT_EXPORT hipError_t hipMemsetAsync(void* destination, int value, size_t bytes, hipStream_t stream) {
  if (bytes == 0) return hipSuccess;
  return on_device([&](const Driver& api) {
    return api.memset_async(device_pointer(destination), static_cast<unsigned char>(value), bytes, cuda(stream));
  });
}

HIPDNN_PORT_EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned int flags) {
  if (stream == nullptr) return hipErrorInvalidValue;
  return on_device([&](const Driver& api) { return api.stream_create(reinterpret_cast<CUstream*>(stream), flags); });
}

HIPDNN_PORT_EXPORT hipError_t hipStreamDestroy(hipStream_t stream) {
  if (stream == nullptr) return hipErrorInvalidHandle;
  return on_device([&](const Driver& api) { return api.stream_destroy(cuda(stream)); });
}

HIPDNN_PORT_EXPORT hipError_t hipStreamSynchronize(hipStream_t stream) {
  return on_device([&](const Driver& api) { return api.stream_synchronize(cuda(stream)); });
}

HIPDNN_PORT_EXPORT hipError_t hipStreamGetDevice(hipStream_t stream, int* device) {
  if (device == nullptr) return hipErrorInvalidValue;
  return on_device([&](const Driver& api) {
    CUcontext own = nullptr, context = nullptr;
    if (const CUresult status = api.context_get_current(&own); status != CUDA_SUCCESS) return status;
    if (const CUresult status = api.stream_get_context(cuda(stream), &context); status != CUDA_SUCCESS) return status;
    if (const CUresult status = api.context_set_current(context); status != CUDA_SUCCESS) return status;
    CUdevice found = 0;
    const CUresult status = api.context_get_device(&found);
    if (const CUresult back = api.context_set_current(own); back != CUDA_SUCCESS) return back;
    *device = found;
    return status;
  });
}

HIPDNN_PORT_EXPORT hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags) {
  return on_device([&](const Driver& api) { return api.stream_wait_event(cuda(stream), cuda(event), flags); });
}

HIPDNN_PORT_EXPORT hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
  return on_device([&](const Driver& api) { return api.stream_begin_capture(cuda(stream), mode); });
}

HIPDNN_PORT_EXPORT hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
  if (graph == nullptr) return hipErrorInvalidValue;
  return on_device([&](const Driver& api) { return api.stream_end_capture(cuda(stream), reinterpret_cast<CUgraph*>(graph)); });
}

HIPDNN_PORT_EXPORT hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* executable, hipGraph_t graph, unsigned long long flags) {
  if (executable == nullptr) return hipErrorInvalidValue;
  return on_device([&](const Driver& api) { return api.graph_instantiate(reinterpret_cast<CUgraphExec*>(executable), cuda(graph), flags); });
}

HIPDNN_PORT_EXPORT hipError_t hipGraphLaunch(hipGraphExec_t executable, hipStream_t stream) {
  return on_device([&](const Driver& api) { return api.graph_launch(cuda(executable), cuda(stream)); });
}

HIPDNN_PORT_EXPORT hipError_t hipGraphExecDestroy(hipGraphExec_t executable) {
  return on_device([&](const Driver& api) { return api.graph_exec_destroy(cuda(executable)); });
}

HIPDNN_PORT_EXPORT hipError_t hipGraphDestroy(hipGraph_t graph) {
  return on_device([&](const Driver& api) { return api.graph_destroy(cuda(graph)); });
}

HIPDNN_PORT_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned int flags) {
  if (event == nullptr) return hipErrorInvalidValue;
  return on_device([&](const Driver& api) { return api.event_create(reinterpret_cast<CUevent*>(event), flags); });
}

HIPDNN_PORT_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return on_device([&](const Driver& api) { return api.event_record(cuda(event), cuda(stream)); });
}

HIPDNN_PORT_EXPORT hipError_t hipEventSynchronize(hipEvent_t event) {
  return on_device([&](const Driver& api) { return api.event_synchronize(cuda(event)); });
}

HIPDNN_PORT_EXPORT hipError_t hipEventElapsedTime(float* elapsed_ms, hipEvent_t start, hipEvent_t stop) {
  return on_device([&](const Driver& api) { return api.event_elapsed_time(elapsed_ms, cuda(start), cuda(stop)); });
}

HIPDNN_PORT_EXPORT hipError_t hipEventDestroy(hipEvent_t event) {
  if (event == nullptr) return hipErrorInvalidHandle;
  return on_device([&](const Driver& api) { return api.event_destroy(cuda(event)); });
}

HIPDNN_PORT_EXPORT hipError_t hipdnnPortArchitecture_ext(int device, char* text, size_t capacity) {
  if (text == nullptr || capacity == 0) return hipErrorInvalidValue;
  if (driver() == nullptr) return hipErrorNotInitialized;
  CUdevice handle = 0;
  int major = 0, minor = 0;
  if (const CUresult status = driver()->device_get(&handle, device); status != CUDA_SUCCESS) return status;
  for (const auto& [attribute, value] : {std::pair{static_cast<int>(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), &major},
                                         std::pair{static_cast<int>(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), &minor}}) {
    if (const CUresult status = driver()->device_get_attribute(value, attribute, handle); status != CUDA_SUCCESS) return status;
  }
  std::snprintf(text, capacity, "sm_%d%d", major, minor);
  return hipSuccess;
}

}  // extern "C"
