// Many runs at once on one session: the same bits as one run alone, and nothing grows.
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "cases.h"

namespace ort_tests {
namespace {

constexpr int kRuns = times(2000);

/// An input and what a run alone makes of it.
struct Sample {
  Tensor input;
  std::vector<std::int64_t> output_dims;
  std::vector<float> expected{};
};

bool is_equal(std::span<const float> got, const std::vector<float>& expected) {
  return got.size() == expected.size() && std::memcmp(got.data(), expected.data(), got.size_bytes()) == 0;
}

/// Runs over the samples in turn, from the `first` on: every other one into an array of this thread's, the rest into ONNX Runtime's.
/// Returns how many came out different.
int run_all(const Fixture& fixture, const Session& session, const std::vector<Sample>& samples, std::size_t first, int runs) {
  const hipdnn_ep::Ort& ort = fixture.runtime.ort();
  std::vector<Tensor> outputs;
  for (const Sample& sample : samples) {
    outputs.emplace_back(fixture.runtime, sample.output_dims, std::vector<float>(sample.expected.size()));
  }
  int different = 0;
  for (int i = 0; i < runs; ++i) {
    const std::size_t index = (first + static_cast<std::size_t>(i)) % samples.size();
    const Sample& sample = samples[index];
    if (i % 2 == 0) {
      std::ranges::fill(outputs[index].data(), -2.0F);
      OrtValue* output = outputs[index].value();
      session.run(sample.input.value(), output);
      different += is_equal(outputs[index].data(), sample.expected) ? 0 : 1;
    } else {
      OrtValue* output = nullptr;
      session.run(sample.input.value(), output);
      const OrtOwned<OrtValue> owner(output, ort.api->ReleaseValue);
      different += is_equal(session.numbers(output), sample.expected) ? 0 : 1;
    }
  }
  return different;
}

/// One thread per starting place.
void run_threads(const Fixture& fixture, const Session& session, const std::vector<Sample>& samples, int runs) {
  std::atomic<int> different{0};
  std::mutex mutex;
  std::string failure;
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        try {
          different += run_all(fixture, session, samples, thread, runs);
        } catch (const std::exception& error) {
          const std::lock_guard lock(mutex);
          failure = error.what();
        }
      });
    }
  }
  check::equal(failure, std::string(), "a run failed:");
  check::equal(different.load(), 0, "runs that differ from a run alone:");
}

void run_concurrently(const Fixture& fixture, const std::string& model, const SessionSettings& settings, int runs,
                      const std::vector<std::int64_t>& rows = {1}) {
  const Session session(fixture.runtime, settings);
  check_placement(session, model);
  std::vector<Sample> samples;
  for (unsigned seed = 0; seed < kThreads; ++seed) {
    const std::int64_t row = rows[seed % rows.size()];
    Sample& sample = samples.emplace_back(make_input(fixture, model, seed, row), output_dims(model, row));
    sample.expected = session.run(sample.input);
  }
  // Fewer bytes than the smallest block of every run.
  check_settles(static_cast<std::size_t>(runs) * kThreads * 8, [&] { run_threads(fixture, session, samples, runs); });
}

}  // namespace

void add_run_cases(check::Suite& suite, const Fixture& fixture) {
  for (const std::string model : {"convolution", "pointwise", "parts"}) {
    for (const std::string threads : {"1", "2"}) {
      suite.add("runs: equal bits and flat memory when eight threads share a session, " + model + ", threads " + threads,
                [&fixture, model, threads] { run_concurrently(fixture, model, fixture.settings(model, {{"threads", threads}}), kRuns); });
    }
    suite.add("runs: equal bits and flat memory when eight threads share a session, " + model + " on a virtual GPU", [&fixture, model] {
      SessionSettings settings = fixture.settings(model);
      settings.device = DeviceKind::gpu;
      run_concurrently(fixture, model, settings, kRuns);
    });
  }
  suite.add("runs: equal bits and flat memory when eight threads share a session with dynamic dimensions", [&fixture] {
    run_concurrently(fixture, "dynamic", fixture.settings("dynamic"), kRuns, {1, 2, 3, 5});
  });
  suite.add("runs: equal bits and flat memory when programs drive each other out", [&fixture] {
    // Without packed weights: the host library gives those back in blocks of many programs'.
    run_concurrently(fixture, "dynamic_pointwise", fixture.settings("dynamic_pointwise", {{"max_specializations", "2"}}), kRuns / 10, {1, 2, 3, 5});
  });
}

}  // namespace ort_tests
