#include "memory/stream_set.h"

#include <algorithm>
#include <utility>

#include "device/error.h"

namespace hipdnn_ep {
namespace {

/// An event that marks the end of what a stream has been given so far.
struct Mark {
  hipStream_t stream;
  hipdnn_rt::Event event;
};

void record(const hipdnn_rt::HipApi& hip, const hipdnn_rt::Event& event, hipStream_t stream) {
  hipdnn_rt::check(hip, hip.event_record(event.get(), stream), "hipEventRecord");
}

}  // namespace

void StreamSet::attach(hipStream_t stream) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(members_, stream, &Member::stream);
  if (found != members_.end()) {
    ++found->attach_count;
  } else {
    members_.push_back({stream, 1, tick()});
  }
}

void StreamSet::detach(hipStream_t stream) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(members_, stream, &Member::stream);
  if (found != members_.end() && --found->attach_count == 0) members_.erase(found);
}

bool StreamSet::contains(hipStream_t stream) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(members_, stream, &Member::stream) != members_.end();
}

void StreamSet::synchronize(hipStream_t stream) {
  const Tick begin = tick();
  device_->activate();
  const hipdnn_rt::HipApi& hip = device_->library().hip();
  hipdnn_rt::check(hip, hip.stream_synchronize(stream), "hipStreamSynchronize");
  note_done(stream, begin);
}

bool StreamSet::is_ready(StreamUser last, Tick released, StreamUser next) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::none_of(members_, [&](const Member& member) {
    const bool is_involved = (!last || member.stream == *last) && (!next || member.stream != *next);
    return is_involved && member.done < released;
  });
}

void StreamSet::wait(StreamUser last, StreamUser next) {
  if (next) {
    wait_on_device(last, *next);
  } else {
    wait_on_host(last);
  }
}

void StreamSet::wait_on_device(StreamUser last, hipStream_t next) {
  const hipdnn_rt::HipApi& hip = device_->library().hip();
  hipdnn_rt::Event event;
  // Under the lock no stream leaves the set and is destroyed. A wait keeps the point that was recorded, so one event serves all.
  const std::lock_guard lock(mutex_);
  for (const Member& member : members_) {
    if ((last && member.stream != *last) || member.stream == next) continue;
    if (!event) event = events_.take();
    record(hip, event, member.stream);
    hipdnn_rt::check(hip, hip.stream_wait_event(next, event.get(), 0), "hipStreamWaitEvent");
  }
  events_.give(std::move(event));
}

void StreamSet::wait_on_host(StreamUser last) {
  const hipdnn_rt::HipApi& hip = device_->library().hip();
  const Tick begin = tick();
  std::vector<Mark> marks;
  {
    const std::lock_guard lock(mutex_);
    for (const Member& member : members_) {
      if (last && member.stream != *last) continue;
      record(hip, marks.emplace_back(member.stream, events_.take()).event, member.stream);
    }
  }
  for (Mark& mark : marks) {
    hipdnn_rt::check(hip, hip.event_synchronize(mark.event.get()), "hipEventSynchronize");
    note_done(mark.stream, begin);
    events_.give(std::move(mark.event));
  }
}

void StreamSet::note_done(hipStream_t stream, Tick point) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(members_, stream, &Member::stream);
  if (found != members_.end()) found->done = std::max(found->done, point);
}

}  // namespace hipdnn_ep
