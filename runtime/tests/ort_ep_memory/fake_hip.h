// What the tests ask of the fake HIP library beside HIP's own functions; see fake_hip.cc.
#pragma once

#include <cstddef>

#include "hip_runtime_abi.h"

struct FakeHipCounts {
  std::size_t mallocs;
  std::size_t frees;
  /// Device and pinned memory that is allocated.
  std::size_t live_bytes;
  std::size_t live_events;
  std::size_t live_streams;
  std::size_t event_records;
  std::size_t device_waits;
  /// Times that the host waited for a stream or an event.
  std::size_t host_waits;
  /// Memory freed, or a stream destroyed, with work still queued on it.
  std::size_t violations;
};

extern "C" {

FakeHipCounts fakeHipCounts();
/// Work queued on a stream and not done.
std::size_t fakeHipPending(hipStream_t stream);
/// Queue a kernel that reads `source` and writes its bytes to `destination`, which may be any memory.
void fakeHipLaunch(void* destination, const void* source, std::size_t bytes, hipStream_t stream);
/// Memory there is, for all devices and pinned memory together.
void fakeHipSetCapacity(std::size_t bytes);
/// The ordinal that the calling thread has set last.
int fakeHipCurrentDevice();
/// The ordinal that was set when `pointer` was allocated; -1 for pinned memory, -2 for an unknown pointer.
int fakeHipDeviceOf(const void* pointer);
/// Let the next call of that function fail.
void fakeHipFailNext(const char* function);

}  // extern "C"
