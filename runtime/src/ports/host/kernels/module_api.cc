// HIP's module functions: a module is one kernel, made from an image that is text.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "../hipdnn_host.h"
#include "frontend/export.h"
#include "frontend/handle.h"
#include "frontend/port_extensions.h"
#include "hip_runtime_abi.h"
#include "kernel.h"

/// The only function of a module.
struct ihipModuleSymbol_t {
  std::unique_ptr<const hipdnn_port::kernels::Kernel> kernel;
  std::string name;
  std::atomic<int> threads;
};

struct ihipModule_t {
  ihipModuleSymbol_t function;
};

namespace {

using namespace hipdnn_port;

std::array<char, 1024>& last_error() {
  thread_local std::array<char, 1024> message{};
  return message;
}

void set_error(std::string_view message) {
  auto& kept = last_error();
  const std::size_t length = std::min(message.size(), kept.size() - 1);
  std::copy_n(message.data(), length, kept.data());
  kept[length] = '\0';
}

/// Runs `body`; what it throws becomes `failure` with its message kept for this thread.
template <class Body>
hipError_t guarded(hipError_t failure, Body&& body) noexcept {
  set_error("");
  try {
    return body();
  } catch (const std::bad_alloc&) {
    set_error("out of memory");
    return hipErrorOutOfMemory;
  } catch (const std::exception& error) {
    set_error(error.what());
    return failure;
  } catch (...) {
    set_error("unknown exception");
    return failure;
  }
}

}  // namespace

extern "C" {

HIPDNN_PORT_EXPORT hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  return guarded(hipErrorInvalidImage, [&] {
    if (module == nullptr || image == nullptr) return hipErrorInvalidValue;
    *module = nullptr;
    const auto parsed = kernels::Image::parse(static_cast<const char*>(image));
    *module = new ihipModule_t{{kernels::make_kernel(parsed), parsed.function, HandleState().threads.load()}};
    return hipSuccess;
  });
}

HIPDNN_PORT_EXPORT hipError_t hipModuleUnload(hipModule_t module) {
  if (module == nullptr) return hipErrorInvalidHandle;
  delete module;
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
  return guarded(hipErrorNotFound, [&] {
    if (function == nullptr || name == nullptr) return hipErrorInvalidValue;
    *function = nullptr;
    if (module == nullptr) return hipErrorInvalidHandle;
    if (module->function.name != name) kernels::refuse("the module's function is '", module->function.name, "', not '", name, "'");
    *function = &module->function;
    return hipSuccess;
  });
}

// One block is the whole launch: the kernel divides its work among threads itself.
HIPDNN_PORT_EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                                    unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int,
                                                    hipStream_t, void** kernel_params, void** extra) {
  return guarded(hipErrorLaunchFailure, [&] {
    if (function == nullptr) return hipErrorInvalidHandle;
    for (const unsigned int size : {grid_x, grid_y, grid_z, block_x, block_y, block_z}) {
      if (size != 1) kernels::refuse("a launch is one block of one thread, got a size of ", size);
    }
    if (kernel_params == nullptr || extra != nullptr) kernels::refuse("arguments are passed by kernel_params, extra is null");
    function->kernel->launch(kernel_params, function->threads.load(std::memory_order_relaxed));
    return hipSuccess;
  });
}

HIPDNN_PORT_EXPORT const char* hipdnnPortLastKernelError_ext(void) { return last_error().data(); }

HIPDNN_PORT_EXPORT hipError_t hipdnnHostSetModuleThreads_ext(hipModule_t module, int threads) {
  if (module == nullptr) return hipErrorInvalidHandle;
  if (threads < 1) return hipErrorInvalidValue;
  module->function.threads = threads;
  return hipSuccess;
}

}  // extern "C"
