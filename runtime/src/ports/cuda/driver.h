// CUDA's driver library, opened at run time.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "cuda_driver_abi.h"

namespace hipdnn_cuda {

/// The driver functions this port calls.
struct Driver {
  decltype(&::cuGetErrorName) get_error_name = nullptr;
  decltype(&::cuGetErrorString) get_error_string = nullptr;
  decltype(&::cuDriverGetVersion) driver_get_version = nullptr;
  decltype(&::cuDeviceGetCount) device_get_count = nullptr;
  decltype(&::cuDeviceGet) device_get = nullptr;
  decltype(&::cuDeviceGetName) device_get_name = nullptr;
  decltype(&::cuDeviceGetAttribute) device_get_attribute = nullptr;
  decltype(&::cuDevicePrimaryCtxRetain) primary_context_retain = nullptr;
  decltype(&::cuCtxSetCurrent) context_set_current = nullptr;
  decltype(&::cuMemAlloc_v2) mem_alloc = nullptr;
  decltype(&::cuMemFree_v2) mem_free = nullptr;
  decltype(&::cuMemGetInfo_v2) mem_get_info = nullptr;
  decltype(&::cuMemHostAlloc) mem_host_alloc = nullptr;
  decltype(&::cuMemFreeHost) mem_free_host = nullptr;
  decltype(&::cuMemcpyAsync) memcpy_async = nullptr;
  decltype(&::cuMemcpy2DAsync_v2) memcpy_2d_async = nullptr;
  decltype(&::cuMemsetD8Async) memset_async = nullptr;
  decltype(&::cuStreamCreate) stream_create = nullptr;
  decltype(&::cuStreamDestroy_v2) stream_destroy = nullptr;
  decltype(&::cuStreamSynchronize) stream_synchronize = nullptr;
  decltype(&::cuStreamWaitEvent) stream_wait_event = nullptr;
  decltype(&::cuStreamGetCtx) stream_get_context = nullptr;
  decltype(&::cuCtxGetCurrent) context_get_current = nullptr;
  decltype(&::cuCtxGetDevice) context_get_device = nullptr;
  decltype(&::cuStreamBeginCapture_v2) stream_begin_capture = nullptr;
  decltype(&::cuStreamEndCapture) stream_end_capture = nullptr;
  decltype(&::cuStreamGetCaptureInfo_v2) stream_get_capture_info = nullptr;
  decltype(&::cuStreamUpdateCaptureDependencies) stream_update_capture_dependencies = nullptr;
  decltype(&::cuEventCreate) event_create = nullptr;
  decltype(&::cuEventRecord) event_record = nullptr;
  decltype(&::cuEventSynchronize) event_synchronize = nullptr;
  decltype(&::cuEventElapsedTime) event_elapsed_time = nullptr;
  decltype(&::cuEventDestroy_v2) event_destroy = nullptr;
  decltype(&::cuGraphAddEmptyNode) graph_add_empty_node = nullptr;
  decltype(&::cuGraphInstantiateWithFlags) graph_instantiate = nullptr;
  decltype(&::cuGraphLaunch) graph_launch = nullptr;
  decltype(&::cuGraphExecDestroy) graph_exec_destroy = nullptr;
  decltype(&::cuGraphDestroy) graph_destroy = nullptr;
  decltype(&::cuModuleLoadDataEx) module_load_data = nullptr;
  decltype(&::cuModuleUnload) module_unload = nullptr;
  decltype(&::cuModuleGetFunction) module_get_function = nullptr;
  decltype(&::cuFuncSetAttribute) function_set_attribute = nullptr;
  decltype(&::cuLaunchKernelEx) launch_kernel = nullptr;
};

/// The opened and initialized driver; null where there is none, and then `driver_failure` says why. Any thread.
const Driver* driver();

/// Why `driver` answered null, with what to do about it.
const std::string& driver_failure();

/// Make the primary context of the calling thread's device (0, or the last one of `choose_device`) current. CUDA_SUCCESS or why not.
CUresult bind_device();

/// Make a device the calling thread's.
CUresult choose_device(int ordinal);
int chosen_device();

/// Keeps the reason of a failure for the calling thread, for hipdnnPortLastKernelError_ext; empty takes it away.
void set_last_failure(std::string_view text);
const char* last_failure();

}  // namespace hipdnn_cuda
