// Sessions on the tests' provider: what ONNX Runtime allocates, copies and waits for in a run, on streams that run as late as they may.
#include <atomic>
#include <cstdio>
#include <numeric>
#include <thread>

#include "runtime.h"

namespace memory_tests {
namespace {

/// Run with host input, and compare the host output with the input: no operator of the models changes positive numbers.
void run_once(const Runtime& runtime, OrtSession& session, float start) {
  std::vector<float> input = ramp(start);
  const auto value = runtime.host_tensor(input);
  OrtValue* raw = nullptr;
  runtime.run(session, value.get(), raw);
  const OrtOwned<OrtValue> output(raw, runtime.ort().api->ReleaseValue);
  const auto* data = static_cast<const float*>(data_of(runtime, raw));
  for (std::size_t i = 0; i < input.size(); ++i) check::equal(data[i], input[i], "output " + std::to_string(i));
}

void test_runs_are_right_and_allocate_nothing_new(const Libraries& libraries, const std::vector<std::string>& operators) {
  const FakeHip fake(libraries);
  const Runtime runtime(libraries, "hip");
  const auto session = runtime.create_session(encode_chain(operators, kCount));
  const PluginCounts before = runtime.counts();
  for (int i = 0; i < 5; ++i) run_once(runtime, *session, static_cast<float>(i));
  const FakeHipCounts warm = fake.counts();
  for (int i = 0; i < 50; ++i) run_once(runtime, *session, static_cast<float>(i));
  const PluginCounts after = runtime.counts();
  check::equal(fake.counts().mallocs, warm.mallocs, "calls of hipMalloc in further runs,");
  check::equal(fake.counts().live_events, warm.live_events, "events");
  check::equal(fake.counts().live_streams, warm.live_streams, "streams");
  check::equal(fake.counts().violations, 0u);
  check::that(after.computes > before.computes, "the provider's kernel ran");
  check::equal(after.stream_computes - before.stream_computes, after.computes - before.computes, "kernels with a stream,");
  check::that(after.stream_allocs > before.stream_allocs, "blocks were lent to the runs' streams");
}

void test_device_tensors_stay_on_the_device(const Libraries& libraries) {
  const FakeHip fake(libraries);
  const Runtime runtime(libraries, "hip");
  const auto session = runtime.create_session(encode_chain({"Abs", "Abs", "Abs"}, kCount));
  std::vector<float> input = ramp(3), result = ramp(0);
  const auto host = runtime.host_tensor(input), back = runtime.host_tensor(result);
  const auto device_input = runtime.device_tensor(kCount), device_output = runtime.device_tensor(kCount);
  runtime.copy(host.get(), device_input.get());
  const std::size_t copies = runtime.counts().copies;
  OrtValue* output = device_output.get();
  runtime.run(*session, device_input.get(), output);
  check::equal(runtime.counts().copies, copies, "copies during the run,");
  runtime.copy(device_output.get(), back.get());
  check::equal(result, input);
}

void test_concurrent_runs_do_not_meet(const Libraries& libraries, const std::vector<std::string>& operators) {
  const FakeHip fake(libraries);
  const Runtime runtime(libraries, "hip");
  const auto session = runtime.create_session(encode_chain(operators, kCount));
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int id = 0; id < 8; ++id) {
    threads.emplace_back([&, id] {
      try {
        for (int i = 0; i < 50; ++i) run_once(runtime, *session, static_cast<float>(1000 * id + i));
      } catch (const std::exception& error) {
        std::printf("  thread %d: %s\n", id, error.what());
        ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  check::equal(failures.load(), 0);
  check::equal(fake.counts().violations, 0u);
}

}  // namespace

void add_session_cases(check::Suite& suite, const Libraries& libraries) {
  const std::vector<std::string> whole{"Abs", "Abs", "Abs"};
  const std::vector<std::string> mixed{"Abs", "Relu", "Abs", "Abs", "Relu", "Abs"};
  suite.add("session: runs are right and allocate nothing new",
            [&libraries, whole] { test_runs_are_right_and_allocate_nothing_new(libraries, whole); });
  suite.add("session: runs with host operators between are right and allocate nothing new",
            [&libraries, mixed] { test_runs_are_right_and_allocate_nothing_new(libraries, mixed); });
  suite.add("session: device tensors stay on the device", [&libraries] { test_device_tensors_stay_on_the_device(libraries); });
  suite.add("session: concurrent runs do not meet", [&libraries, whole] { test_concurrent_runs_do_not_meet(libraries, whole); });
  suite.add("session: concurrent runs with host operators between do not meet",
            [&libraries, mixed] { test_concurrent_runs_do_not_meet(libraries, mixed); });
}

}  // namespace memory_tests
