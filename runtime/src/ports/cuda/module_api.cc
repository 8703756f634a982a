// HIP's module functions on CUDA's: an image is PTX as text, or a binary for the device.
#include <array>
#include <string>

#include "driver.h"
#include "frontend/export.h"
#include "frontend/port_extensions.h"
#include "hip_runtime_abi.h"
#include "hipdnn_cuda.h"
#include "kernel_order.h"

namespace {

using hipdnn_cuda::bind_device;
using hipdnn_cuda::driver;
using hipdnn_cuda::set_last_failure;

constexpr unsigned int shared_memory_without_asking = 48 * 1024;

/// Whether launches that overlap can be recorded in graphs, too: from CUDA 12.3 on.
bool records_overlap() {
  static const bool is_new = [] {
    int version = 0;
    return driver() != nullptr && driver()->driver_get_version(&version) == CUDA_SUCCESS && version >= 12030;
  }();
  return is_new;
}

/// Keeps the driver's words about a failure.
hipError_t explained(CUresult status, const char* log = "") {
  if (status == CUDA_SUCCESS) return hipSuccess;
  const char* text = nullptr;
  driver()->get_error_string(status, &text);
  std::string words = text != nullptr ? text : "unknown CUDA error";
  if (*log != '\0') words += std::string(": ") + log;
  set_last_failure(words);
  return status;
}

hipError_t launch(hipFunction_t function, const CUlaunchConfig& config, void** kernel_params, void** extra) {
  if (function == nullptr) return hipErrorInvalidHandle;
  if (const CUresult status = bind_device(); status != CUDA_SUCCESS) return status;
  const auto raw = reinterpret_cast<CUfunction>(function);
  if (config.shared_memory_bytes > shared_memory_without_asking) {
    const CUresult status = driver()->function_set_attribute(raw, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                             static_cast<int>(config.shared_memory_bytes));
    if (status != CUDA_SUCCESS) return explained(status);
  }
  if (const CUresult status = driver()->launch_kernel(&config, raw, kernel_params, extra); status != CUDA_SUCCESS) return explained(status);
  hipdnn_cuda::after_launch(config.stream);
  return hipSuccess;
}

}  // namespace

extern "C" {

HIPDNN_PORT_EXPORT hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  set_last_failure("");
  if (module == nullptr || image == nullptr) return hipErrorInvalidValue;
  *module = nullptr;
  if (const CUresult status = bind_device(); status != CUDA_SUCCESS) return status;
  std::array<char, 1024> log{};
  std::array<int, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size() - 1)};
  auto** loaded = reinterpret_cast<CUmodule*>(module);
  const CUresult status = driver()->module_load_data(loaded, image, options.size(), options.data(), values.data());
  return explained(status, log.data());
}

HIPDNN_PORT_EXPORT hipError_t hipModuleUnload(hipModule_t module) {
  if (module == nullptr) return hipErrorInvalidHandle;
  if (const CUresult status = bind_device(); status != CUDA_SUCCESS) return status;
  return driver()->module_unload(reinterpret_cast<CUmodule>(module));
}

HIPDNN_PORT_EXPORT hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
  set_last_failure("");
  if (function == nullptr || name == nullptr) return hipErrorInvalidValue;
  *function = nullptr;
  if (module == nullptr) return hipErrorInvalidHandle;
  if (const CUresult status = bind_device(); status != CUDA_SUCCESS) return status;
  auto** found = reinterpret_cast<CUfunction*>(function);
  return explained(driver()->module_get_function(found, reinterpret_cast<CUmodule>(module), name));
}

HIPDNN_PORT_EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                                    unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                                    unsigned int shared_memory_bytes, hipStream_t stream, void** kernel_params, void** extra) {
  return launch(function, {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_memory_bytes, reinterpret_cast<CUstream>(stream), nullptr, 0},
                kernel_params, extra);
}

HIPDNN_PORT_EXPORT hipError_t hipdnnCudaLaunchWaitingKernel_ext(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                                                unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                                                unsigned int block_z, unsigned int shared_memory_bytes, hipStream_t stream,
                                                                void** kernel_params, void** extra) {
  // Its blocks may be on their multiprocessors by the time the kernel in front ends.
  CUlaunchAttribute overlap{};
  overlap.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  overlap.value.is_programmatic_stream_serialization_allowed = 1;
  return launch(function,
                {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_memory_bytes, reinterpret_cast<CUstream>(stream), &overlap,
                 records_overlap() ? 1U : 0U},
                kernel_params, extra);
}

HIPDNN_PORT_EXPORT const char* hipdnnPortLastKernelError_ext(void) { return hipdnn_cuda::last_failure(); }

}  // extern "C"
