// ort_ep_allocation_test ONNXRUNTIME LIBRARY MODELS PYTHON: a run in steady state allocates nothing below the provider.
#include <algorithm>
#include <array>
#include <barrier>
#include <climits>
#include <cstdio>
#include <memory>
#include <thread>

#include "allocation_record.h"
#include "cases.h"

namespace {

using namespace ort_tests;

/// The provider's own library and the one it runs programs on.
constexpr std::array kLibraries{"libhipdnn_ep.so", "libhipdnn_host.so"};
constexpr int kRuns = 20;

void test_counter_sees_a_library(const Fixture& fixture, const char* library) {
  const int count = count_allocations(library, [&] { Session(fixture.runtime, fixture.settings("pointwise")); });
  check::that(count > 0, "no allocation seen while a session was made");
}

Tensor make_output(const Fixture& fixture, const std::string& model) {
  const std::vector<std::int64_t> dims = output_dims(model);
  return {fixture.runtime, dims, std::vector<float>(element_count(dims))};
}

/// `run` is called again and again; it is in steady state soon.
template <typename Run>
void check_steady_state(const Run& run) {
  const auto run_often = [&] {
    for (int i = 0; i < kRuns; ++i) run();
  };
  run_often();
  for (const char* library : kLibraries) check::equal(count_allocations(library, run_often), 0, std::string("allocations of ") + library);
}

void test_steady_state(const Fixture& fixture, const std::string& model, const std::string& threads) {
  const Session session(fixture.runtime, fixture.settings(model, {{"threads", threads}}));
  check_placement(session, model);
  const Tensor input = make_input(fixture, model, 0);
  Tensor output = make_output(fixture, model);
  check_steady_state([&] {
    OrtValue* own = output.value();
    session.run(input.value(), own);
    OrtValue* made = nullptr;
    session.run(input.value(), made);
    fixture.runtime.ort().api->ReleaseValue(made);
  });
}

/// On arrays in the device's memory: copies from and to the host are not the fused nodes'.
void test_steady_state_on_gpu(const Fixture& fixture, const std::string& model) {
  SessionSettings settings = fixture.settings(model);
  settings.device = DeviceKind::gpu;
  const Session session(fixture.runtime, settings);
  check_placement(session, model);
  const OrtOwned<OrtValue> input = make_device_tensor(fixture.runtime, input_dims(model));
  const OrtOwned<OrtValue> output = make_device_tensor(fixture.runtime, output_dims(model));
  check_steady_state([&] {
    OrtValue* own = output.get();
    session.run(input.get(), own);
  });
}

/// Of more phases than contexts and arrays can be met for the first time in, at least one is in steady state.
void test_steady_state_of_threads(const Fixture& fixture, const std::string& model) {
  constexpr int threads = 4;
  constexpr int phases = threads + threads * threads + threads + 1;
  const Session session(fixture.runtime, fixture.settings(model, {{"threads", "1"}}));
  std::barrier gate(threads + 1);
  std::vector<std::jthread> workers;
  for (unsigned t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      const Tensor input = make_input(fixture, model, t);
      Tensor output = make_output(fixture, model);
      for (std::size_t phase = 0; phase < phases * kLibraries.size(); ++phase) {
        gate.arrive_and_wait();
        OrtValue* own = output.value();
        for (int i = 0; i < kRuns; ++i) session.run(input.value(), own);
        gate.arrive_and_wait();
      }
    });
  }
  for (const char* library : kLibraries) {
    int fewest = INT_MAX;
    for (int phase = 0; phase < phases; ++phase) {
      fewest = std::min(fewest, count_allocations(library, [&] {
                          gate.arrive_and_wait();
                          gate.arrive_and_wait();
                        }));
    }
    check::equal(fewest, 0, std::string("fewest allocations in a phase of ") + library);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s ONNXRUNTIME LIBRARY MODELS PYTHON\n", argv[0]);
    return 2;
  }
  const Fixture fixture(argv[1], argv[2], argv[3], argv[4]);
  check::Suite suite;
  for (const char* library : kLibraries) {
    suite.add(std::string("allocation: counted when a session is made, ") + library,
              [&fixture, library] { test_counter_sees_a_library(fixture, library); });
  }
  for (const std::string model : {"pointwise", "convolution", "parts", "dynamic"}) {
    for (const std::string threads : {"1", "2"}) {
      suite.add("allocation: none in steady state, " + model + ", threads " + threads,
                [&fixture, model, threads] { test_steady_state(fixture, model, threads); });
    }
    suite.add("allocation: none in steady state of threads that share a session, " + model,
              [&fixture, model] { test_steady_state_of_threads(fixture, model); });
  }
  for (const std::string model : {"pointwise", "convolution", "dynamic"}) {
    suite.add("allocation: none in steady state, " + model + " on a virtual GPU",
              [&fixture, model] { test_steady_state_on_gpu(fixture, model); });
  }
  return suite.run();
}
