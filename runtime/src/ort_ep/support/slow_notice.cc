#include "support/slow_notice.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace hipdnn_ep {

SlowNotice::SlowNotice(std::chrono::steady_clock::duration delay, std::function<void()> tell)
    : thread_([delay, tell = std::move(tell)](const std::stop_token& stop) {
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any ending;
        ending.wait_for(lock, stop, delay, [] { return false; });
        if (!stop.stop_requested()) tell();
      }) {}

}  // namespace hipdnn_ep
