// What AMD's backend library calls of HIP and this project does not, so that the backend opens with this library in HIP's place, ranks engines and
// profiles. As called by its backend/src (logging, heuristics/DeviceProperties.cpp, descriptors/ProfilingControlDescriptor.cpp) and its data_sdk
// (StallGate.hpp) in versions of 2026.
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "frontend/export.h"
#include "hip_runtime_abi.h"

namespace {

template <class Field>
void put(std::span<std::byte> properties, std::size_t offset, Field value) {
  std::memcpy(properties.subspan(offset, sizeof value).data(), &value, sizeof value);
}

}  // namespace

extern "C" {

/// The CPU; no architecture, for it runs no code of a GPU's.
HIPDNN_PORT_EXPORT hipError_t hipGetDevicePropertiesR0600(void* properties, int device) {
  if (properties == nullptr) return hipErrorInvalidValue;
  if (device != 0) return hipErrorInvalidDevice;
  const std::span<std::byte> all(static_cast<std::byte*>(properties), hipDevicePropR0600Bytes);
  std::memset(all.data(), 0, all.size());
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  if (const hipError_t status = hipMemGetInfo(&free_bytes, &total_bytes); status != hipSuccess) return status;
  put(all, hipDevicePropR0600TotalGlobalMem, total_bytes);
  put(all, hipDevicePropR0600MultiProcessorCount, static_cast<std::int32_t>(sysconf(_SC_NPROCESSORS_ONLN)));
  return hipDeviceGetName(static_cast<char*>(properties), hipDevicePropR0600NameBytes, device);
}

/// There is one device, so any stream is on it.
HIPDNN_PORT_EXPORT hipError_t hipStreamGetDevice(hipStream_t, int* device) { return hipGetDevice(device); }

/// Capabilities and limits of GPUs: none is here, so each is 0.
HIPDNN_PORT_EXPORT hipError_t hipDeviceGetAttribute(int* value, int /*attribute*/, int device) {
  if (value == nullptr) return hipErrorInvalidValue;
  if (device != 0) return hipErrorInvalidDevice;
  *value = 0;
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipDeviceSynchronize(void) { return hipSuccess; }

HIPDNN_PORT_EXPORT hipError_t hipEventCreate(hipEvent_t* event) { return hipEventCreateWithFlags(event, hipEventDefault); }

/// Memory of any kind is the host's, but for signals, on which no stream can wait here.
HIPDNN_PORT_EXPORT hipError_t hipExtMallocWithFlags(void** pointer, size_t bytes, unsigned int flags) {
  return (flags & hipMallocSignalMemory) != 0 ? hipErrorNotSupported : hipMalloc(pointer, bytes);
}

/// A stream's work is done where it is ordered: what waits would never be released.
HIPDNN_PORT_EXPORT hipError_t hipStreamWaitValue32(hipStream_t, void*, uint32_t, unsigned int, uint32_t) { return hipErrorNotSupported; }

}  // extern "C"
