// The HIP runtime functions this project calls, on host memory: one device, streams in order on the calling thread.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "frontend/export.h"
#include "hip_runtime_abi.h"

/// Work ordered on a stream is done when the ordering call returns, so a stream has nothing to hold. Its address tells streams apart.
struct ihipStream_t {
  char identity = 0;
};

/// One thread at a time, as in HIP.
struct ihipEvent_t {
  bool has_timing = true;
  std::optional<std::chrono::steady_clock::time_point> recorded;
};

namespace {

constexpr std::size_t allocation_alignment = 64;
/// Convolutions read activations in short rows far apart: with small pages, finding their addresses takes a part of the time.
constexpr std::size_t huge_page = std::size_t{2} << 20U;
constexpr int reported_runtime_version = 70000000;  // the calls above keep the signatures of ROCm 7.0

constexpr std::array<std::pair<hipError_t, std::array<const char*, 2>>, 11> errors{{
    {hipSuccess, {"hipSuccess", "no error"}},
    {hipErrorInvalidValue, {"hipErrorInvalidValue", "invalid argument"}},
    {hipErrorOutOfMemory, {"hipErrorOutOfMemory", "out of memory"}},
    {hipErrorNotInitialized, {"hipErrorNotInitialized", "initialization error"}},
    {hipErrorInvalidDevice, {"hipErrorInvalidDevice", "invalid device ordinal"}},
    {hipErrorInvalidImage, {"hipErrorInvalidImage", "device kernel image is invalid"}},
    {hipErrorInvalidHandle, {"hipErrorInvalidHandle", "invalid resource handle"}},
    {hipErrorNotFound, {"hipErrorNotFound", "named symbol not found"}},
    {hipErrorNotReady, {"hipErrorNotReady", "device not ready"}},
    {hipErrorLaunchFailure, {"hipErrorLaunchFailure", "unspecified launch failure"}},
    {hipErrorNotSupported, {"hipErrorNotSupported", "operation not supported"}},
}};

const char* error_text(hipError_t error, std::size_t column) {
  const auto found = std::ranges::find(errors, error, [](const auto& entry) { return entry.first; });
  return found == errors.end() ? "hipErrorUnknown" : found->second[column];
}

/// The CPU as the kernel names it.
std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

hipError_t allocate(void** pointer, std::size_t bytes) {
  if (pointer == nullptr) return hipErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return hipSuccess;
  if (bytes > PTRDIFF_MAX) return hipErrorOutOfMemory;
  const bool is_large = bytes >= huge_page;
  if (posix_memalign(pointer, is_large ? huge_page : allocation_alignment, bytes) != 0) {
    *pointer = nullptr;
    return hipErrorOutOfMemory;
  }
  // What the last page has of it stays in small ones, or it would take memory that nobody asked for. A system without huge pages refuses.
  if (is_large) madvise(*pointer, bytes / huge_page * huge_page, MADV_HUGEPAGE);
  return hipSuccess;
}

}  // namespace

extern "C" {

HIPDNN_PORT_EXPORT hipError_t hipInit(unsigned int flags) { return flags == 0 ? hipSuccess : hipErrorInvalidValue; }

HIPDNN_PORT_EXPORT hipError_t hipGetDeviceCount(int* count) {
  if (count == nullptr) return hipErrorInvalidValue;
  *count = 1;
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipSetDevice(int device) { return device == 0 ? hipSuccess : hipErrorInvalidDevice; }

HIPDNN_PORT_EXPORT hipError_t hipGetDevice(int* device) {
  if (device == nullptr) return hipErrorInvalidValue;
  *device = 0;
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipDeviceGetName(char* name, int capacity, int device) {
  if (name == nullptr || capacity < 1) return hipErrorInvalidValue;
  if (device != 0) return hipErrorInvalidDevice;
  const std::string model = cpu_model();
  const std::size_t length = std::min(model.size(), static_cast<std::size_t>(capacity) - 1);
  std::memcpy(name, model.data(), length);
  name[length] = '\0';
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipRuntimeGetVersion(int* version) {
  if (version == nullptr) return hipErrorInvalidValue;
  *version = reported_runtime_version;
  return hipSuccess;
}

HIPDNN_PORT_EXPORT const char* hipGetErrorName(hipError_t error) { return error_text(error, 0); }

HIPDNN_PORT_EXPORT const char* hipGetErrorString(hipError_t error) { return error_text(error, 1); }

HIPDNN_PORT_EXPORT hipError_t hipMalloc(void** pointer, size_t bytes) { return allocate(pointer, bytes); }

HIPDNN_PORT_EXPORT hipError_t hipFree(void* pointer) {
  std::free(pointer);
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  if (free_bytes == nullptr || total_bytes == nullptr) return hipErrorInvalidValue;
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  *free_bytes = page_bytes * static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES));
  *total_bytes = page_bytes * static_cast<size_t>(sysconf(_SC_PHYS_PAGES));
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned int /*flags: all memory is pinned here*/) {
  return allocate(pointer, bytes);
}

HIPDNN_PORT_EXPORT hipError_t hipHostFree(void* pointer) { return hipFree(pointer); }

HIPDNN_PORT_EXPORT hipError_t hipMemcpyAsync(void* destination, const void* source, size_t bytes, hipMemcpyKind kind, hipStream_t) {
  if (kind < hipMemcpyHostToHost || kind > hipMemcpyDefault) return hipErrorInvalidValue;
  if (bytes == 0) return hipSuccess;
  if (destination == nullptr || source == nullptr) return hipErrorInvalidValue;
  std::memmove(destination, source, bytes);
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipMemcpy2DAsync(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                                               size_t width, size_t height, hipMemcpyKind kind, hipStream_t stream) {
  if (width > destination_pitch || width > source_pitch) return hipErrorInvalidValue;
  for (size_t row = 0; row < height; ++row) {
    void* to = static_cast<std::byte*>(destination) + row * destination_pitch;
    const hipError_t status = hipMemcpyAsync(to, static_cast<const std::byte*>(source) + row * source_pitch, width, kind, stream);
    if (status != hipSuccess) return status;
  }
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipMemsetAsync(void* destination, int value, size_t bytes, hipStream_t) {
  if (bytes == 0) return hipSuccess;
  if (destination == nullptr) return hipErrorInvalidValue;
  std::memset(destination, value, bytes);
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned int flags) {
  if (stream == nullptr || flags > hipStreamNonBlocking) return hipErrorInvalidValue;
  *stream = new (std::nothrow) ihipStream_t;
  return *stream == nullptr ? hipErrorOutOfMemory : hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipStreamDestroy(hipStream_t stream) {
  if (stream == nullptr) return hipErrorInvalidHandle;
  delete stream;
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipStreamSynchronize(hipStream_t) { return hipSuccess; }

HIPDNN_PORT_EXPORT hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t event, unsigned int flags) {
  if (event == nullptr) return hipErrorInvalidHandle;
  return flags == 0 ? hipSuccess : hipErrorInvalidValue;
}

HIPDNN_PORT_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned int flags) {
  if (event == nullptr || (flags & ~static_cast<unsigned int>(hipEventDisableTiming)) != 0) return hipErrorInvalidValue;
  *event = new (std::nothrow) ihipEvent_t{.has_timing = (flags & hipEventDisableTiming) == 0, .recorded = std::nullopt};
  return *event == nullptr ? hipErrorOutOfMemory : hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t) {
  if (event == nullptr) return hipErrorInvalidHandle;
  if (event->has_timing) event->recorded = std::chrono::steady_clock::now();
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipEventSynchronize(hipEvent_t event) { return event == nullptr ? hipErrorInvalidHandle : hipSuccess; }

HIPDNN_PORT_EXPORT hipError_t hipEventElapsedTime(float* elapsed_ms, hipEvent_t start, hipEvent_t stop) {
  if (elapsed_ms == nullptr) return hipErrorInvalidValue;
  if (start == nullptr || stop == nullptr) return hipErrorInvalidHandle;
  if (!start->has_timing || !stop->has_timing || !start->recorded || !stop->recorded) return hipErrorInvalidHandle;
  *elapsed_ms = std::chrono::duration<float, std::milli>(*stop->recorded - *start->recorded).count();
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipEventDestroy(hipEvent_t event) {
  if (event == nullptr) return hipErrorInvalidHandle;
  delete event;
  return hipSuccess;
}

}  // extern "C"
