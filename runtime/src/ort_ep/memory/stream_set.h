// The streams that work on a device's memory, and what is known to be done on them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "memory/event_pool.h"
#include "plan/device.h"

namespace hipdnn_ep {

/// A point in host time; later points are greater.
using Tick = std::uint64_t;

/// Whose queued work may touch a piece of memory: one stream's, or, where empty, that of any stream of the set.
using StreamUser = std::optional<hipStream_t>;

/// Safe to share between threads. Streams belong to whoever attached them, and stay valid while they are attached.
class StreamSet {
 public:
  StreamSet(std::shared_ptr<const hipdnn_rt::Device> device, EventPool& events) : device_(std::move(device)), events_(events) {}

  /// Count `stream` in. It may be attached several times, and leaves when it has been detached as often.
  void attach(hipStream_t stream);
  /// The caller has waited for the stream's work, or knows that none of it touches memory of this device's pools.
  void detach(hipStream_t stream) noexcept;
  bool contains(hipStream_t stream) const;

  /// The next point in time.
  Tick tick() noexcept { return clock_.fetch_add(1, std::memory_order_acq_rel) + 1; }
  /// Wait on the host for all work that `stream` has been given so far.
  void synchronize(hipStream_t stream);

  /// Whether `next` (the host where empty) may use memory that `last` used and let go at `released`, without waiting.
  bool is_ready(StreamUser last, Tick released, StreamUser next) const;
  /// Make that true by waiting for all work that `last` has been given so far: on the device where `next` is a stream, else on the host.
  void wait(StreamUser last, StreamUser next);

 private:
  struct Member {
    hipStream_t stream;
    std::size_t attach_count;
    /// Work queued before this point is done.
    Tick done;
  };

  void wait_on_device(StreamUser last, hipStream_t next);
  void wait_on_host(StreamUser last);
  void note_done(hipStream_t stream, Tick point);

  std::shared_ptr<const hipdnn_rt::Device> device_;
  EventPool& events_;
  std::atomic<Tick> clock_{0};
  mutable std::mutex mutex_;
  std::vector<Member> members_;
};

}  // namespace hipdnn_ep
