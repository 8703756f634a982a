// The steps of a session's programs in ONNX Runtime's own profile: an event for each, beside those of ONNX Runtime.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "execute/context.h"
#include "ort.h"

namespace hipdnn_ep {

/// A run of a fused node's program, as it is kept until the profile is written.
struct RecordedRun {
  std::string node;
  /// The one that ran it, as ONNX Runtime numbers threads.
  std::int32_t thread;
  std::shared_ptr<const hipdnn_rt::LoadedProgram> program;
  hipdnn_rt::TimedRun times;
};

/// The number of the calling thread.
std::int32_t this_thread_number();

/// The runs that one profiler has heard of. Safe to use from several threads.
class Recording {
 public:
  /// As many events as ONNX Runtime keeps of its own; what is beyond is dropped, as there.
  static constexpr std::size_t kMostEvents = 1'000'000;

  void add(RecordedRun run);
  /// All runs so far; they are forgotten.
  std::vector<RecordedRun> take();

 private:
  std::mutex mutex_;
  std::vector<RecordedRun> runs_;
  std::size_t event_count_ = 0;
};

/// Which recordings hear of the runs on which thread. ONNX Runtime profiles a session, a single run, or both; it tells each profiler when an
/// event starts and stops on a thread, and a run belongs to those in whose events it lies. Shared by a session's provider and its profilers;
/// safe to use from several threads.
class Listeners {
 public:
  /// All that a run costs where nobody profiles.
  bool is_any() const { return count_.load(std::memory_order_relaxed) > 0; }
  /// Those of the calling thread, each once.
  std::vector<std::shared_ptr<Recording>> here() const;

  void begin(const std::shared_ptr<Recording>& recording, std::uint64_t event);
  /// The end of an event on the calling thread, and of those within it, whose own ends may be missing after a failure.
  void end(const std::shared_ptr<Recording>& recording, std::uint64_t event);
  /// The end of all events of a recording.
  void end_all(const std::shared_ptr<Recording>& recording);

 private:
  struct Entry {
    std::thread::id thread;
    std::shared_ptr<Recording> recording;
    std::uint64_t event;
  };
  void update_count() { count_.store(entries_.size(), std::memory_order_relaxed); }

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::atomic<std::size_t> count_{0};
};

/// What ONNX Runtime calls when it profiles a session or a run; it releases it.
class StepProfiler final : public OrtEpProfilerImpl {
 public:
  StepProfiler(const Ort& ort, std::shared_ptr<Listeners> listeners);

 private:
  void start(std::int64_t offset_ns);
  void end(OrtProfilingEventsContainer* events);
  void add_events(const RecordedRun& run, OrtProfilingEventsContainer* events) const;

  Ort ort_;
  std::shared_ptr<Listeners> listeners_;
  std::shared_ptr<Recording> recording_ = std::make_shared<Recording>();
  /// What ONNX Runtime counts the profile's times from.
  hipdnn_rt::Clock::time_point origin_;
};

}  // namespace hipdnn_ep
