// A HIP runtime whose streams do nothing until the host waits: the latest execution that the order between streams allows, so that work
// which lacks a wait gives wrong results every time. Only copies from or to host memory that is not pinned are done when the call returns,
// as HIP documents for hipMemcpyAsync. Two devices on host memory. The hipDNN functions that opening a device calls are here too, and do
// nothing.
#include "fake_hip.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "hipdnn_backend.h"

#define FAKE_EXPORT __attribute__((visibility("default")))

namespace {

constexpr int device_count = 2;
constexpr std::size_t alignment = 256;

struct StreamState;

/// A point in a stream's work: done when the stream has executed that many pieces.
struct Point {
  std::shared_ptr<StreamState> stream;
  std::size_t position = 0;
};

struct Work {
  Point wait;
  void* destination = nullptr;
  const void* source = nullptr;
  std::size_t bytes = 0;
};

struct StreamState {
  std::deque<Work> queue;
  std::size_t executed = 0;

  std::size_t end() const { return executed + queue.size(); }
};

struct Allocation {
  std::size_t bytes;
  int device;
};

struct Fake {
  std::mutex mutex;
  std::shared_ptr<StreamState> default_stream = std::make_shared<StreamState>();
  std::map<hipStream_t, std::shared_ptr<StreamState>> streams;
  std::map<const void*, Allocation> allocations;
  FakeHipCounts counts{};
  std::size_t capacity = std::size_t{1} << 30;
  std::string failing;

  bool fails(const char* function) {
    if (failing != function) return false;
    failing.clear();
    return true;
  }
  std::shared_ptr<StreamState> state(hipStream_t stream) {
    if (stream == nullptr) return default_stream;
    const auto found = streams.find(stream);
    return found == streams.end() ? nullptr : found->second;
  }
};

Fake& fake() {
  static Fake instance;
  return instance;
}

int& current_device() {
  thread_local int device = 0;
  return device;
}

void execute_until(StreamState& stream, std::size_t position) {
  while (stream.executed < position && !stream.queue.empty()) {
    const Work work = stream.queue.front();
    if (work.wait.stream != nullptr) execute_until(*work.wait.stream, work.wait.position);
    if (work.bytes != 0) std::memmove(work.destination, work.source, work.bytes);
    stream.queue.pop_front();
    ++stream.executed;
  }
}

bool overlaps(const void* pointer, std::size_t bytes, const void* start, std::size_t size) {
  const auto* begin = static_cast<const char*>(pointer);
  const auto* other = static_cast<const char*>(start);
  return begin < other + size && other < begin + bytes;
}

bool is_used(const StreamState& stream, const void* start, std::size_t size) {
  for (const Work& work : stream.queue) {
    if (work.bytes == 0) continue;
    if (overlaps(work.destination, work.bytes, start, size) || overlaps(work.source, work.bytes, start, size)) return true;
  }
  return false;
}

bool is_allocated(const Fake& hip, const void* pointer) {
  const auto next = hip.allocations.upper_bound(pointer);
  if (next == hip.allocations.begin()) return false;
  const auto& [start, allocation] = *std::prev(next);
  return overlaps(pointer, 1, start, allocation.bytes);
}

hipError_t allocate(void** pointer, std::size_t bytes, int device) {
  Fake& hip = fake();
  const std::lock_guard lock(hip.mutex);
  if (hip.fails("hipMalloc") || hip.counts.live_bytes + bytes > hip.capacity) return hipErrorOutOfMemory;
  *pointer = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  hip.allocations[*pointer] = {bytes, device};
  hip.counts.live_bytes += bytes;
  ++hip.counts.mallocs;
  return hipSuccess;
}

hipError_t release(void* pointer) {
  Fake& hip = fake();
  const std::lock_guard lock(hip.mutex);
  const auto found = hip.allocations.find(pointer);
  if (found == hip.allocations.end()) return hipErrorInvalidValue;
  bool is_busy = is_used(*hip.default_stream, pointer, found->second.bytes);
  for (const auto& [handle, stream] : hip.streams) is_busy = is_busy || is_used(*stream, pointer, found->second.bytes);
  if (is_busy) ++hip.counts.violations;
  hip.counts.live_bytes -= found->second.bytes;
  ++hip.counts.frees;
  hip.allocations.erase(found);
  std::free(pointer);
  return hipSuccess;
}

}  // namespace

struct ihipStream_t {
  char identity = 0;
};

struct ihipEvent_t {
  Point recorded;
};

extern "C" {

FAKE_EXPORT FakeHipCounts fakeHipCounts() {
  const std::lock_guard lock(fake().mutex);
  return fake().counts;
}

FAKE_EXPORT std::size_t fakeHipPending(hipStream_t stream) {
  const std::lock_guard lock(fake().mutex);
  return fake().state(stream)->queue.size();
}

FAKE_EXPORT void fakeHipLaunch(void* destination, const void* source, std::size_t bytes, hipStream_t stream) {
  const std::lock_guard lock(fake().mutex);
  fake().state(stream)->queue.push_back({{}, destination, source, bytes});
}

FAKE_EXPORT void fakeHipSetCapacity(std::size_t bytes) {
  const std::lock_guard lock(fake().mutex);
  fake().capacity = bytes;
}

FAKE_EXPORT int fakeHipCurrentDevice() { return current_device(); }

FAKE_EXPORT int fakeHipDeviceOf(const void* pointer) {
  const std::lock_guard lock(fake().mutex);
  const auto found = fake().allocations.find(pointer);
  return found == fake().allocations.end() ? -2 : found->second.device;
}

FAKE_EXPORT void fakeHipFailNext(const char* function) {
  const std::lock_guard lock(fake().mutex);
  fake().failing = function;
}

FAKE_EXPORT hipError_t hipGetDeviceCount(int* count) {
  *count = device_count;
  return hipSuccess;
}

FAKE_EXPORT hipError_t hipSetDevice(int device) {
  if (device < 0 || device >= device_count) return hipErrorInvalidDevice;
  current_device() = device;
  return hipSuccess;
}

FAKE_EXPORT const char* hipGetErrorString(hipError_t error) {
  return error == hipErrorOutOfMemory ? "out of memory" : "another error";
}

FAKE_EXPORT hipError_t hipMalloc(void** pointer, size_t bytes) { return allocate(pointer, bytes, current_device()); }
FAKE_EXPORT hipError_t hipFree(void* pointer) { return release(pointer); }
FAKE_EXPORT hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned int) { return allocate(pointer, bytes, -1); }
FAKE_EXPORT hipError_t hipHostFree(void* pointer) { return release(pointer); }

FAKE_EXPORT hipError_t hipMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const std::lock_guard lock(fake().mutex);
  *total_bytes = fake().capacity;
  *free_bytes = fake().capacity - fake().counts.live_bytes;
  return hipSuccess;
}

FAKE_EXPORT hipError_t hipMemcpyAsync(void* destination, const void* source, size_t bytes, hipMemcpyKind, hipStream_t stream) {
  const std::lock_guard lock(fake().mutex);
  if (fake().fails("hipMemcpyAsync")) return hipErrorInvalidValue;
  const auto state = fake().state(stream);
  if (state == nullptr) return hipErrorInvalidHandle;
  state->queue.push_back({{}, destination, source, bytes});
  if (!is_allocated(fake(), destination) || !is_allocated(fake(), source)) execute_until(*state, state->end());
  return hipSuccess;
}

// Devices ask for these; no test here copies so.
FAKE_EXPORT hipError_t hipMemcpy2DAsync(void*, size_t, const void*, size_t, size_t, size_t, hipMemcpyKind, hipStream_t) {
  return hipErrorNotSupported;
}
FAKE_EXPORT hipError_t hipMemsetAsync(void*, int, size_t, hipStream_t) { return hipErrorNotSupported; }

FAKE_EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned int) {
  const std::lock_guard lock(fake().mutex);
  *stream = new ihipStream_t;
  fake().streams[*stream] = std::make_shared<StreamState>();
  ++fake().counts.live_streams;
  return hipSuccess;
}

FAKE_EXPORT hipError_t hipStreamDestroy(hipStream_t stream) {
  const std::lock_guard lock(fake().mutex);
  const auto state = fake().state(stream);
  if (stream == nullptr || state == nullptr) return hipErrorInvalidHandle;
  if (!state->queue.empty()) ++fake().counts.violations;
  fake().streams.erase(stream);
  --fake().counts.live_streams;
  delete stream;
  return hipSuccess;
}

FAKE_EXPORT hipError_t hipStreamSynchronize(hipStream_t stream) {
  const std::lock_guard lock(fake().mutex);
  ++fake().counts.host_waits;
  if (fake().fails("hipStreamSynchronize")) return hipErrorInvalidValue;
  const auto state = fake().state(stream);
  if (state == nullptr) return hipErrorInvalidHandle;
  execute_until(*state, state->end());
  return hipSuccess;
}

FAKE_EXPORT hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int) {
  const std::lock_guard lock(fake().mutex);
  ++fake().counts.device_waits;
  if (fake().fails("hipStreamWaitEvent")) return hipErrorInvalidValue;
  const auto state = fake().state(stream);
  if (state == nullptr) return hipErrorInvalidHandle;
  state->queue.push_back({event->recorded, nullptr, nullptr, 0});
  return hipSuccess;
}

FAKE_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned int) {
  const std::lock_guard lock(fake().mutex);
  *event = new ihipEvent_t;
  ++fake().counts.live_events;
  return hipSuccess;
}

FAKE_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  const std::lock_guard lock(fake().mutex);
  ++fake().counts.event_records;
  const auto state = fake().state(stream);
  if (state == nullptr) return hipErrorInvalidHandle;
  event->recorded = {state, state->end()};
  return hipSuccess;
}

FAKE_EXPORT hipError_t hipEventSynchronize(hipEvent_t event) {
  const std::lock_guard lock(fake().mutex);
  ++fake().counts.host_waits;
  if (fake().fails("hipEventSynchronize")) return hipErrorInvalidValue;
  if (event->recorded.stream != nullptr) execute_until(*event->recorded.stream, event->recorded.position);
  return hipSuccess;
}

FAKE_EXPORT hipError_t hipEventElapsedTime(float* elapsed_ms, hipEvent_t, hipEvent_t) {
  *elapsed_ms = 0;
  return hipSuccess;
}

FAKE_EXPORT hipError_t hipEventDestroy(hipEvent_t event) {
  const std::lock_guard lock(fake().mutex);
  --fake().counts.live_events;
  delete event;
  return hipSuccess;
}

FAKE_EXPORT hipError_t hipModuleLoadData(hipModule_t*, const void*) { return hipErrorInvalidImage; }
FAKE_EXPORT hipError_t hipModuleUnload(hipModule_t) { return hipErrorInvalidHandle; }
FAKE_EXPORT hipError_t hipModuleGetFunction(hipFunction_t*, hipModule_t, const char*) { return hipErrorNotFound; }
FAKE_EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                                             unsigned int, hipStream_t, void**, void**) {
  return hipErrorInvalidHandle;
}

FAKE_EXPORT hipdnnStatus_t hipdnnCreate(hipdnnHandle_t* handle) {
  *handle = reinterpret_cast<hipdnnHandle_t>(&fake());
  return HIPDNN_STATUS_SUCCESS;
}
FAKE_EXPORT hipdnnStatus_t hipdnnDestroy(hipdnnHandle_t) { return HIPDNN_STATUS_SUCCESS; }
FAKE_EXPORT hipdnnStatus_t hipdnnSetStream(hipdnnHandle_t, hipStream_t) { return HIPDNN_STATUS_SUCCESS; }
FAKE_EXPORT hipdnnStatus_t hipdnnBackendCreateDescriptor(hipdnnBackendDescriptorType_t, hipdnnBackendDescriptor_t* descriptor) {
  *descriptor = reinterpret_cast<hipdnnBackendDescriptor_t>(&fake());
  return HIPDNN_STATUS_SUCCESS;
}
FAKE_EXPORT hipdnnStatus_t hipdnnBackendDestroyDescriptor(hipdnnBackendDescriptor_t) { return HIPDNN_STATUS_SUCCESS; }
FAKE_EXPORT hipdnnStatus_t hipdnnBackendFinalize(hipdnnBackendDescriptor_t) { return HIPDNN_STATUS_NOT_SUPPORTED; }
FAKE_EXPORT hipdnnStatus_t hipdnnBackendSetAttribute(hipdnnBackendDescriptor_t, hipdnnBackendAttributeName_t, hipdnnBackendAttributeType_t,
                                                     int64_t, const void*) {
  return HIPDNN_STATUS_NOT_SUPPORTED;
}
FAKE_EXPORT hipdnnStatus_t hipdnnBackendGetAttribute(hipdnnBackendDescriptor_t, hipdnnBackendAttributeName_t, hipdnnBackendAttributeType_t,
                                                     int64_t, int64_t*, void*) {
  return HIPDNN_STATUS_NOT_SUPPORTED;
}
FAKE_EXPORT hipdnnStatus_t hipdnnBackendExecute(hipdnnHandle_t, hipdnnBackendDescriptor_t, hipdnnBackendDescriptor_t) {
  return HIPDNN_STATUS_NOT_SUPPORTED;
}
FAKE_EXPORT const char* hipdnnGetErrorString(hipdnnStatus_t) { return "fake"; }
FAKE_EXPORT void hipdnnGetLastErrorString(char* message, size_t capacity) {
  if (capacity != 0) message[0] = '\0';
}

}  // extern "C"
