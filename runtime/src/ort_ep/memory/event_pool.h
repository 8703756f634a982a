// Events used again and again, because creating one costs more than recording it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "plan/device.h"

namespace hipdnn_ep {

/// Untimed events of one device. Safe to share between threads.
class EventPool {
 public:
  explicit EventPool(std::shared_ptr<const hipdnn_rt::Device> device) : device_(std::move(device)) {}

  /// An event in no particular state: whoever takes it records it first.
  hipdnn_rt::Event take();
  /// Return an event that nobody waits on from the host any more. Waits that were queued on a device keep what they had.
  void give(hipdnn_rt::Event event) noexcept;

 private:
  std::shared_ptr<const hipdnn_rt::Device> device_;
  std::mutex mutex_;
  std::vector<hipdnn_rt::Event> idle_;
};

}  // namespace hipdnn_ep
