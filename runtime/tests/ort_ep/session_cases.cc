// Sessions made at once, and sessions made and destroyed one after the other.
#include <latch>
#include <mutex>
#include <thread>

#include "cases.h"

namespace ort_tests {
namespace {

constexpr int kSessions = times(200);

/// A compiled form of a model, and settings that open it without a compiler.
SessionSettings compile_ahead(const Fixture& fixture, const std::string& model) {
  const std::string path = (fixture.folder.path() / (model + "_compiled.onnx")).string();
  SessionSettings settings = fixture.settings(model);
  settings.entries = {{"ep.context_enable", "1"}, {"ep.context_file_path", path}, {"ep.context_embed_mode", "1"}};
  std::filesystem::remove(path);
  check_placement(Session(fixture.runtime, settings), model);
  SessionSettings compiled{path, DeviceKind::cpu, {{"compiler", "none"}}, {}};
  return compiled;
}

/// Sessions with `settings` from eight threads that start together.
void create_at_once(const Fixture& fixture, const std::string& model, const SessionSettings& settings, const std::vector<float>& expected) {
  std::latch start(kThreads);
  std::mutex mutex;
  std::vector<std::string> failures;
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        try {
          const Session session(fixture.runtime, settings);
          const std::vector<float> got = session.run(make_input(fixture, model, 0));
          if (got != expected) throw std::runtime_error("a session computes different numbers");
        } catch (const std::exception& error) {
          const std::lock_guard lock(mutex);
          failures.emplace_back(error.what());
        }
      });
    }
  }
  check::equal(failures, std::vector<std::string>{}, "failures:");
}

std::vector<float> run_alone(const Fixture& fixture, const std::string& model) {
  return Session(fixture.runtime, fixture.settings(model)).run(make_input(fixture, model, 0));
}

void test_sessions_at_once(const Fixture& fixture, const std::string& model) {
  const std::vector<float> expected = run_alone(fixture, model);
  // Nobody has compiled anything into this folder.
  const TemporaryFolder cache;
  create_at_once(fixture, model, fixture.settings(model, {{"cache_dir", cache.path().string()}}), expected);
  create_at_once(fixture, model, fixture.settings(model), expected);
}

void test_compiled_sessions_at_once(const Fixture& fixture, const std::string& model) {
  create_at_once(fixture, model, compile_ahead(fixture, model), run_alone(fixture, model));
}

void create_in_turn(const Fixture& fixture, const std::string& model, const SessionSettings& settings, int count) {
  Tensor input = make_input(fixture, model, 0);
  for (int i = 0; i < count; ++i) {
    const Session session(fixture.runtime, settings);
    check::that(!session.run(input).empty(), "a run gives nothing");
  }
}

void test_sessions_in_turn(const Fixture& fixture, const std::string& model, const SessionSettings& settings) {
  // ONNX Runtime itself keeps some 100 bytes of each session.
  check_settles(kSessions * 320, [&] { create_in_turn(fixture, model, settings, kSessions); });
}

}  // namespace

void add_session_cases(check::Suite& suite, const Fixture& fixture) {
  for (const std::string model : {"convolution", "parts"}) {
    suite.add("sessions: equal bits when eight are made at once, " + model, [&fixture, model] { test_sessions_at_once(fixture, model); });
    suite.add("sessions: equal bits when eight are made at once, compiled " + model,
              [&fixture, model] { test_compiled_sessions_at_once(fixture, model); });
    suite.add("sessions: flat memory when one follows the other, " + model,
              [&fixture, model] { test_sessions_in_turn(fixture, model, fixture.settings(model)); });
    suite.add("sessions: flat memory when one follows the other, compiled " + model,
              [&fixture, model] { test_sessions_in_turn(fixture, model, compile_ahead(fixture, model)); });
  }
  suite.add("sessions: flat memory when one follows the other, convolution on a virtual GPU", [&fixture] {
    SessionSettings settings = fixture.settings("convolution");
    settings.device = DeviceKind::gpu;
    test_sessions_in_turn(fixture, "convolution", settings);
  });
}

}  // namespace ort_tests
