// ort_ep_profiler_tests HOST_FOLDER [FILTER]
#include <cstdio>
#include <map>
#include <thread>

#include "../check.h"
#include "execute/context_pool.h"
#include "sample_program.h"
#include "session.h"
#include "step_profiler.h"

/// ONNX Runtime's type, which is opaque.
struct OrtProfilingEvent {
  std::string name;
  std::int64_t begin_us;
  std::int64_t duration_us;
  std::int32_t thread;
  std::map<std::string, std::string> arguments;
};

/// As ONNX Runtime's, it copies what it is given.
struct OrtProfilingEventsContainer {
  std::vector<OrtProfilingEvent> events;
};

namespace {

using hipdnn_ep::Listeners;
using hipdnn_ep::Recording;
using hipdnn_ep::StepProfiler;
using hipdnn_rt::Clock;
using Recordings = std::vector<std::shared_ptr<Recording>>;

int alive_events = 0;

OrtStatus* create_event(OrtProfilingEventCategory category, std::int32_t, std::int32_t thread, const char* name, std::int64_t begin_us,
                        std::int64_t duration_us, const char* const* keys, const char* const* values, std::size_t count, OrtProfilingEvent** made) {
  check::equal(category, OrtProfilingEventCategory_KERNEL);
  *made = new OrtProfilingEvent{name, begin_us, duration_us, thread, {}};
  for (std::size_t i = 0; i < count; ++i) (*made)->arguments[keys[i]] = values[i];
  ++alive_events;
  return nullptr;
}

void release_event(OrtProfilingEvent* event) {
  --alive_events;
  delete event;
}

OrtStatus* add_events(OrtProfilingEventsContainer* container, const OrtProfilingEvent* const* events, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) container->events.push_back(*events[i]);
  return nullptr;
}

/// ONNX Runtime as the profiler sees it.
struct FakeOrt {
  FakeOrt() {
    table.CreateProfilingEvent = create_event;
    table.ReleaseProfilingEvent = release_event;
    table.ProfilingEventsContainer_AddEvents = add_events;
    ort.ep = &table;
  }
  OrtEpApi table{};
  hipdnn_ep::Ort ort;
};

Recordings here_on_another_thread(const Listeners& listeners) {
  Recordings found;
  std::thread([&] { found = listeners.here(); }).join();
  return found;
}

void test_heard_on_the_thread_of_the_event() {
  Listeners listeners;
  const auto recording = std::make_shared<Recording>();
  check::that(!listeners.is_any(), "somebody listens before a profile has begun");
  listeners.begin(recording, 1);
  check::that(listeners.is_any(), "nobody listens in an event");
  check::that(listeners.here() == Recordings{recording}, "not heard on the thread of the event");
  check::that(here_on_another_thread(listeners).empty(), "heard on another thread");
  listeners.end(recording, 1);
  check::that(!listeners.is_any() && listeners.here().empty(), "somebody listens after the event");
}

void test_each_heard_once_in_nested_events() {
  Listeners listeners;
  const auto session = std::make_shared<Recording>(), run = std::make_shared<Recording>();
  listeners.begin(session, 7);
  listeners.begin(run, 7);
  listeners.begin(session, 7);  // a node's, in the same microsecond as the run's
  check::that(listeners.here() == Recordings{session, run}, "not each once, in the order in which they began");
  listeners.end(session, 7);
  check::that(listeners.here() == Recordings{session, run}, "the end of the inner event ends the outer one");
  listeners.end(session, 7);
  check::that(listeners.here() == Recordings{run}, "the end of one profile's event ends another's");
}

void test_end_that_is_missing_is_made_up_for() {
  Listeners listeners;
  const auto recording = std::make_shared<Recording>(), other = std::make_shared<Recording>();
  listeners.begin(recording, 1);
  listeners.begin(recording, 2);  // a node that fails
  listeners.begin(other, 3);
  listeners.end(recording, 1);
  check::that(listeners.here() == Recordings{other}, "an event without an end outlives the one around it");
  listeners.end(recording, 9);
  listeners.end_all(other);
  check::that(!listeners.is_any(), "an event outlives its profile");
}

void test_runs_beyond_the_limit_are_dropped() {
  Recording recording;
  hipdnn_rt::TimedRun run;
  run.elapsed_us.resize(Recording::kMostEvents / 2);
  for (int i = 0; i < 3; ++i) recording.add({"node", 1, nullptr, run});
  check::equal(recording.take().size(), std::size_t{2});
  recording.add({"node", 1, nullptr, run});
  check::equal(recording.take().size(), std::size_t{1}, "after what was taken:");
}

/// A profiler between its start and its release.
struct Running {
  Running() : profiler(new StepProfiler(fake.ort, listeners)) {
    // 5 ms after ONNX Runtime's.
    began = Clock::now();
    check::that(profiler->StartProfiling(profiler, 5'000'000) == nullptr, "StartProfiling failed");
  }
  ~Running() { profiler->Release(profiler); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  std::vector<OrtProfilingEvent> end() {
    OrtProfilingEventsContainer container;
    check::that(profiler->EndProfiling(profiler, &container) == nullptr, "EndProfiling failed");
    check::equal(alive_events, 0, "events that are not released:");
    return container.events;
  }

  FakeOrt fake;
  std::shared_ptr<Listeners> listeners = std::make_shared<Listeners>();
  OrtEpProfilerImpl* profiler;
  Clock::time_point began;
};

void test_an_event_for_each_step(const std::string& host) {
  runtime_tests::Sample sample = runtime_tests::relu_of_sum({4});
  sample.program["steps"][1]["name"] = "[a \"quoted\"\\\nname";
  const auto loaded = hipdnn_rt::LoadedProgram::load(runtime_tests::open_host({host, "", ""}), sample.parse());
  Running running;
  running.profiler->StartEvent(running.profiler, 1);
  const Recordings heard = running.listeners->here();
  check::equal(heard.size(), std::size_t{1});
  heard[0]->add({"fused", 12, loaded, {running.began + std::chrono::microseconds(1000), {10.7, 20.7}}});
  running.profiler->StopEvent(running.profiler, 1, nullptr);
  const std::vector<OrtProfilingEvent> events = running.end();
  check::equal(events.size(), std::size_t{2});
  check::equal(events[0].name, "add");
  check::equal(events[1].name, " [a 'quoted'/ name");
  // 5 ms before the profiler has heard of the profile, and a moment from `began` until then.
  check::that(events[0].begin_us >= 5900 && events[0].begin_us <= 6000, "the first step begins elsewhere");
  check::equal(events[0].begin_us + events[0].duration_us, events[1].begin_us, "the second step's begin:");
  check::that(events[1].duration_us == 20 || events[1].duration_us == 21, "another duration");
  check::equal(events[1].arguments.at("duration_us"), "20.700");
  check::equal(events[1].arguments.at("node"), "fused");
  check::equal(events[1].arguments.at("kind"), "execute");
  check::equal(events[1].arguments.at("operations"), "relu");
  check::that(!events[1].arguments.at("engine").empty(), "no engine");
  check::equal(events[1].thread, 12);
}

void test_silent_after_the_end() {
  Running running;
  running.profiler->StartEvent(running.profiler, 1);
  check::that(running.end().empty(), "events without a run");
  check::that(!running.listeners->is_any(), "listens after the end");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s HOST_FOLDER [FILTER]\n", argv[0]);
    return 2;
  }
  const std::string host = argv[1];
  check::Suite suite;
  suite.add("listeners: heard on the thread of the event", test_heard_on_the_thread_of_the_event);
  suite.add("listeners: each heard once in nested events", test_each_heard_once_in_nested_events);
  suite.add("listeners: an end that is missing is made up for", test_end_that_is_missing_is_made_up_for);
  suite.add("recording: runs beyond the limit are dropped", test_runs_beyond_the_limit_are_dropped);
  suite.add("profiler: an event for each step", [&] { test_an_event_for_each_step(host); });
  suite.add("profiler: silent after the end", test_silent_after_the_end);
  return suite.run(argc > 2 ? argv[2] : "");
}
