#include "step_profiler.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "execute/step_label.h"
#include "names.h"

namespace hipdnn_ep {
namespace {

using hipdnn_rt::Clock;
using Microseconds = std::chrono::duration<double, std::micro>;

/// ONNX Runtime writes texts into its JSON as they are, and what begins like a list or an object without quotes.
std::string plain(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  std::replace(text.begin(), text.end(), '\\', '/');
  std::replace_if(text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
  if (text.starts_with('{') || text.starts_with('[')) text.insert(0, 1, ' ');
  return text;
}

std::string with_decimals(double number) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.3f", number);
  return text.data();
}

/// An event's texts and times.
struct Event {
  std::string name;
  std::int64_t begin_us;
  std::int64_t duration_us;
  std::vector<std::pair<const char*, std::string>> arguments;
};

OrtOwned<OrtProfilingEvent> make_event(const Ort& ort, const Event& event, std::int32_t thread) {
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : event.arguments) {
    keys.push_back(key);
    values.push_back(value.c_str());
  }
  OrtProfilingEvent* raw = nullptr;
  check(ort, ort.ep->CreateProfilingEvent(OrtProfilingEventCategory_KERNEL, static_cast<std::int32_t>(getpid()), thread, event.name.c_str(),
                                          event.begin_us, event.duration_us, keys.data(), values.data(), keys.size(), &raw));
  return {raw, ort.ep->ReleaseProfilingEvent};
}

StepProfiler* self_of(OrtEpProfilerImpl* profiler) { return static_cast<StepProfiler*>(profiler); }

}  // namespace

std::int32_t this_thread_number() { return static_cast<std::int32_t>(syscall(SYS_gettid)); }

void Recording::add(RecordedRun run) {
  const std::lock_guard lock(mutex_);
  event_count_ += run.times.elapsed_us.size();
  if (event_count_ <= kMostEvents) runs_.push_back(std::move(run));
}

std::vector<RecordedRun> Recording::take() {
  const std::lock_guard lock(mutex_);
  event_count_ = 0;
  return std::exchange(runs_, {});
}

std::vector<std::shared_ptr<Recording>> Listeners::here() const {
  std::vector<std::shared_ptr<Recording>> found;
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.thread != std::this_thread::get_id() || std::ranges::find(found, entry.recording) != found.end()) continue;
    found.push_back(entry.recording);
  }
  return found;
}

void Listeners::begin(const std::shared_ptr<Recording>& recording, std::uint64_t event) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({std::this_thread::get_id(), recording, event});
  update_count();
}

void Listeners::end(const std::shared_ptr<Recording>& recording, std::uint64_t event) {
  const std::lock_guard lock(mutex_);
  const auto is_own = [&](const Entry& entry) { return entry.thread == std::this_thread::get_id() && entry.recording == recording; };
  const auto last = std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& entry) { return is_own(entry) && entry.event == event; });
  if (last == entries_.rend()) return;
  entries_.erase(std::remove_if(std::prev(last.base()), entries_.end(), is_own), entries_.end());
  update_count();
}

void Listeners::end_all(const std::shared_ptr<Recording>& recording) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.recording == recording; });
  update_count();
}

StepProfiler::StepProfiler(const Ort& ort, std::shared_ptr<Listeners> listeners)
    : OrtEpProfilerImpl{}, ort_(ort), listeners_(std::move(listeners)) {
  ort_version_supported = ORT_API_VERSION_OF_PROFILING;
  Release = [](OrtEpProfilerImpl* profiler) noexcept {
    StepProfiler* self = self_of(profiler);
    self->listeners_->end_all(self->recording_);
    delete self;
  };
  StartProfiling = [](OrtEpProfilerImpl* profiler, std::int64_t offset_ns) noexcept {
    return guard(self_of(profiler)->ort_, [&] { self_of(profiler)->start(offset_ns); });
  };
  StartEvent = [](OrtEpProfilerImpl* profiler, std::uint64_t event) noexcept {
    StepProfiler* self = self_of(profiler);
    return guard(self->ort_, [&] { self->listeners_->begin(self->recording_, event); });
  };
  StopEvent = [](OrtEpProfilerImpl* profiler, std::uint64_t event, const OrtProfilingEvent*) noexcept {
    StepProfiler* self = self_of(profiler);
    return guard(self->ort_, [&] { self->listeners_->end(self->recording_, event); });
  };
  EndProfiling = [](OrtEpProfilerImpl* profiler, OrtProfilingEventsContainer* events) noexcept {
    return guard(self_of(profiler)->ort_, [&] { self_of(profiler)->end(events); });
  };
}

void StepProfiler::start(std::int64_t offset_ns) {
  origin_ = Clock::now() - std::chrono::duration_cast<Clock::duration>(std::chrono::nanoseconds(offset_ns));
}

void StepProfiler::end(OrtProfilingEventsContainer* events) {
  listeners_->end_all(recording_);
  for (const RecordedRun& run : recording_->take()) add_events(run, events);
}

void StepProfiler::add_events(const RecordedRun& run, OrtProfilingEventsContainer* events) const {
  std::vector<OrtOwned<OrtProfilingEvent>> made;
  double begin_us = Microseconds(run.times.began - origin_).count();
  for (std::size_t i = 0; i < run.times.elapsed_us.size(); ++i) {
    const double end_us = begin_us + run.times.elapsed_us[i];
    const hipdnn_rt::StepLabel label = label_of(*run.program, i);
    // From the two ends, so that the events of steps do not overlap when they are rounded.
    const auto begin = static_cast<std::int64_t>(begin_us);
    const Event event{plain(run.program->program().steps()[i].name), begin, static_cast<std::int64_t>(end_us) - begin,
                      {{"provider", kEpName},
                       {"node", plain(run.node)},
                       {"kind", std::string(label.kind)},
                       {"operations", plain(label.operations)},
                       {"engine", plain(label.engine)},
                       {"duration_us", with_decimals(run.times.elapsed_us[i])}}};
    made.push_back(make_event(ort_, event, run.thread));
    begin_us = end_us;
  }
  std::vector<const OrtProfilingEvent*> pointers;
  for (const auto& event : made) pointers.push_back(event.get());
  check(ort_, ort_.ep->ProfilingEventsContainer_AddEvents(events, pointers.data(), pointers.size()));
}

}  // namespace hipdnn_ep
