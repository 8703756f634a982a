#include "driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <vector>

#include "symbols.h"

namespace hipdnn_cuda {
namespace {

struct OpenedDriver {
  Driver functions;
  bool is_usable = false;
  std::string failure;
};

/// Answers the first missing symbol.
std::string load_all(void* library, Driver& api) {
  std::string missing;
  load(library, "cuGetErrorName", api.get_error_name, missing);
  load(library, "cuGetErrorString", api.get_error_string, missing);
  load(library, "cuDriverGetVersion", api.driver_get_version, missing);
  load(library, "cuDeviceGetCount", api.device_get_count, missing);
  load(library, "cuDeviceGet", api.device_get, missing);
  load(library, "cuDeviceGetName", api.device_get_name, missing);
  load(library, "cuDeviceGetAttribute", api.device_get_attribute, missing);
  load(library, "cuDevicePrimaryCtxRetain", api.primary_context_retain, missing);
  load(library, "cuCtxSetCurrent", api.context_set_current, missing);
  load(library, "cuMemAlloc_v2", api.mem_alloc, missing);
  load(library, "cuMemFree_v2", api.mem_free, missing);
  load(library, "cuMemGetInfo_v2", api.mem_get_info, missing);
  load(library, "cuMemHostAlloc", api.mem_host_alloc, missing);
  load(library, "cuMemFreeHost", api.mem_free_host, missing);
  load(library, "cuMemcpyAsync", api.memcpy_async, missing);
  load(library, "cuMemcpy2DAsync_v2", api.memcpy_2d_async, missing);
  load(library, "cuMemsetD8Async", api.memset_async, missing);
  load(library, "cuStreamCreate", api.stream_create, missing);
  load(library, "cuStreamDestroy_v2", api.stream_destroy, missing);
  load(library, "cuStreamSynchronize", api.stream_synchronize, missing);
  load(library, "cuStreamWaitEvent", api.stream_wait_event, missing);
  load(library, "cuStreamGetCtx", api.stream_get_context, missing);
  load(library, "cuCtxGetCurrent", api.context_get_current, missing);
  load(library, "cuCtxGetDevice", api.context_get_device, missing);
  load(library, "cuStreamBeginCapture_v2", api.stream_begin_capture, missing);
  load(library, "cuStreamEndCapture", api.stream_end_capture, missing);
  load(library, "cuStreamGetCaptureInfo_v2", api.stream_get_capture_info, missing);
  load(library, "cuStreamUpdateCaptureDependencies", api.stream_update_capture_dependencies, missing);
  load(library, "cuEventCreate", api.event_create, missing);
  load(library, "cuEventRecord", api.event_record, missing);
  load(library, "cuEventSynchronize", api.event_synchronize, missing);
  load(library, "cuEventElapsedTime", api.event_elapsed_time, missing);
  load(library, "cuEventDestroy_v2", api.event_destroy, missing);
  load(library, "cuGraphAddEmptyNode", api.graph_add_empty_node, missing);
  load(library, "cuGraphInstantiateWithFlags", api.graph_instantiate, missing);
  load(library, "cuGraphLaunch", api.graph_launch, missing);
  load(library, "cuGraphExecDestroy", api.graph_exec_destroy, missing);
  load(library, "cuGraphDestroy", api.graph_destroy, missing);
  load(library, "cuModuleLoadDataEx", api.module_load_data, missing);
  load(library, "cuModuleUnload", api.module_unload, missing);
  load(library, "cuModuleGetFunction", api.module_get_function, missing);
  load(library, "cuFuncSetAttribute", api.function_set_attribute, missing);
  load(library, "cuLaunchKernelEx", api.launch_kernel, missing);
  return missing;
}

OpenedDriver open_driver() {
  OpenedDriver opened;
  // RTLD_NODELETE: the driver's threads outlive every user.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* reason = dlerror();
    opened.failure = std::string("cannot open libcuda.so.1 (") + (reason != nullptr ? reason : "not found") +
                     "); install NVIDIA's driver, 525 or newer, or use the port 'host'";
    return opened;
  }
  const std::string missing = load_all(library, opened.functions);
  const auto init = reinterpret_cast<decltype(&::cuInit)>(dlsym(library, "cuInit"));
  if (!missing.empty() || init == nullptr) {
    opened.failure = "libcuda.so.1: symbol " + (missing.empty() ? "cuInit" : missing) + " is missing; install a newer NVIDIA driver";
    return opened;
  }
  if (const CUresult status = init(0); status != CUDA_SUCCESS) {
    const char* text = nullptr;
    opened.functions.get_error_string(status, &text);
    opened.failure = std::string("cuInit failed: ") + (text != nullptr ? text : "unknown error") + "; see nvidia-smi";
    return opened;
  }
  opened.is_usable = true;
  return opened;
}

const OpenedDriver& opened_driver() {
  static const OpenedDriver driver = open_driver();
  return driver;
}

/// Primary contexts by device, retained on first use for the life of the process.
CUresult primary_context(int ordinal, CUcontext& context) {
  static std::mutex guard;
  static std::vector<CUcontext> contexts;
  const std::scoped_lock lock(guard);
  const auto index = static_cast<std::size_t>(ordinal);
  if (contexts.size() <= index) contexts.resize(index + 1, nullptr);
  if (contexts[index] == nullptr) {
    CUdevice device = 0;
    if (const CUresult status = driver()->device_get(&device, ordinal); status != CUDA_SUCCESS) return status;
    if (const CUresult status = driver()->primary_context_retain(&contexts[index], device); status != CUDA_SUCCESS) return status;
  }
  context = contexts[index];
  return CUDA_SUCCESS;
}

struct ThreadDevice {
  int ordinal = 0;
  bool is_bound = false;
};

ThreadDevice& thread_device() {
  thread_local ThreadDevice device;
  return device;
}

}  // namespace

const Driver* driver() { return opened_driver().is_usable ? &opened_driver().functions : nullptr; }

const std::string& driver_failure() { return opened_driver().failure; }

CUresult bind_device() {
  ThreadDevice& device = thread_device();
  if (device.is_bound) return CUDA_SUCCESS;
  return choose_device(device.ordinal);
}

CUresult choose_device(int ordinal) {
  if (driver() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (ordinal < 0) return CUDA_ERROR_INVALID_DEVICE;
  CUcontext context = nullptr;
  if (const CUresult status = primary_context(ordinal, context); status != CUDA_SUCCESS) return status;
  const CUresult status = driver()->context_set_current(context);
  if (status == CUDA_SUCCESS) thread_device() = {.ordinal = ordinal, .is_bound = true};
  return status;
}

int chosen_device() { return thread_device().ordinal; }

namespace {

std::array<char, 2048>& failure_text() {
  thread_local std::array<char, 2048> text{};
  return text;
}

}  // namespace

void set_last_failure(std::string_view text) {
  auto& kept = failure_text();
  const std::size_t length = std::min(text.size(), kept.size() - 1);
  std::copy_n(text.data(), length, kept.data());
  kept[length] = '\0';
}

const char* last_failure() { return failure_text().data(); }

}  // namespace hipdnn_cuda
