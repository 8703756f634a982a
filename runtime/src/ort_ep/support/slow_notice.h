// A word on work that takes long, while it goes on.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace hipdnn_ep {

/// Calls a function, in a thread of its own, should it still be there after some time. Its end waits for that call.
class SlowNotice {
 public:
  /// `tell` must not throw.
  SlowNotice(std::chrono::steady_clock::duration delay, std::function<void()> tell);

 private:
  std::jthread thread_;
};

}  // namespace hipdnn_ep
