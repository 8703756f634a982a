#include "memory/event_pool.h"

#include <new>
#include <utility>

namespace hipdnn_ep {

hipdnn_rt::Event EventPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      hipdnn_rt::Event event = std::move(idle_.back());
      idle_.pop_back();
      return event;
    }
  }
  return device_->create_event(false);
}

void EventPool::give(hipdnn_rt::Event event) noexcept {
  if (!event) return;
  const std::lock_guard lock(mutex_);
  try {
    idle_.push_back(std::move(event));
  } catch (const std::bad_alloc&) {
    // The event goes with this call's argument; the next user makes another.
  }
}

}  // namespace hipdnn_ep
