// The library handle: a stream and a number of threads.
#pragma once

#include <atomic>
#include <memory>

#include "hipdnn_backend.h"

namespace hipdnn_port {

/// Shared with the graphs made for a handle, so that a plan built after the handle is gone still knows its threads. Any thread.
struct HandleState {
  std::atomic<int> threads;
  std::atomic<hipStream_t> stream{nullptr};
  /// The vendor library's own handle, used by one thread at a time as the handle is; null where there is none.
  std::shared_ptr<void> vendor;

  /// Starts with as many threads as CPUs this process may use.
  HandleState();
};

}  // namespace hipdnn_port

struct hipdnnHandle {
  std::shared_ptr<hipdnn_port::HandleState> state;
};
