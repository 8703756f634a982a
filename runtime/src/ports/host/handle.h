// The library handle: a stream and a number of threads.
#pragma once

#include <atomic>
#include <memory>

#include "hipdnn_backend.h"

namespace hipdnn_host {

/// Shared with the graphs made for a handle, so that a plan built after the handle is gone still knows its threads. Any thread.
struct HandleState {
  std::atomic<int> threads;
  std::atomic<hipStream_t> stream{nullptr};

  /// Starts with as many threads as CPUs this process may use.
  HandleState();
};

}  // namespace hipdnn_host

struct hipdnnHandle {
  std::shared_ptr<hipdnn_host::HandleState> state;
};
