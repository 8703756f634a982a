// What the cases share: the libraries under test, a device of the fake HIP library, and work for its streams.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../check.h"
#include "fake_hip.h"
#include "memory/device_memory.h"
#include "plan/device.h"

namespace memory_tests {

/// Where the libraries under test lie.
struct Libraries {
  /// Folder of the fake HIP library.
  std::string fake;
  /// Folder of libhipdnn_host.so.
  std::string host;
  /// ONNX Runtime's library.
  std::string onnxruntime;
  /// The execution provider library of ort_cases.cc.
  std::string plugin;
};

/// The fake library's control functions, of the instance that the port opened.
struct FakeHip {
  explicit FakeHip(const Libraries& libraries);

  decltype(&fakeHipCounts) counts;
  decltype(&fakeHipPending) pending;
  decltype(&fakeHipLaunch) launch;
  decltype(&fakeHipSetCapacity) set_capacity;
  decltype(&fakeHipCurrentDevice) current_device;
  decltype(&fakeHipDeviceOf) device_of;
  decltype(&fakeHipFailNext) fail_next;
};

/// Device `ordinal` of the fake library with empty pools.
std::shared_ptr<hipdnn_ep::DeviceMemory> open_memory(const Libraries& libraries, hipdnn_ep::DeviceMemory::Options options = {},
                                                     int ordinal = 0);

/// A stream that is attached to a device's pools for as long as this lives.
class AttachedStream {
 public:
  AttachedStream(hipdnn_ep::DeviceMemory& memory, const FakeHip& fake)
      : memory_(memory), fake_(fake), stream_(memory.device().create_stream()) {
    memory_.streams().attach(get());
  }
  ~AttachedStream() {
    memory_.streams().synchronize(get());
    memory_.streams().detach(get());
  }
  AttachedStream(const AttachedStream&) = delete;
  AttachedStream& operator=(const AttachedStream&) = delete;

  hipStream_t get() const { return stream_.get(); }
  /// Queue work that reads `source` and writes its bytes to `destination`.
  void launch(void* destination, const void* source, std::size_t bytes) const { fake_.launch(destination, source, bytes, get()); }
  void synchronize() const { memory_.streams().synchronize(get()); }

 private:
  hipdnn_ep::DeviceMemory& memory_;
  const FakeHip& fake_;
  hipdnn_rt::Stream stream_;
};

/// The message of the exception of type `Error` that `body` throws.
template <typename Error, typename Body>
std::string message_of(Body&& body, const check::Location& at = check::Location::current()) {
  try {
    std::invoke(body);
  } catch (const Error& error) {
    return error.what();
  }
  throw check::Failure("no exception", at);
}

void add_pool_cases(check::Suite& suite, const Libraries& libraries);
void add_stream_order_cases(check::Suite& suite, const Libraries& libraries);
void add_concurrency_cases(check::Suite& suite, const Libraries& libraries);
void add_ort_cases(check::Suite& suite, const Libraries& libraries);
void add_session_cases(check::Suite& suite, const Libraries& libraries);

}  // namespace memory_tests
