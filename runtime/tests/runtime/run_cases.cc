// Loading and running: values, pointers that change, plans shared, host arrays staged on a device with memory of its own.
#include <algorithm>
#include <cstdint>

#include "cases.h"
#include "device/error.h"
#include "plan/plan_cache.h"
#include "sample_program.h"
#include "session.h"

namespace runtime_tests {
namespace {

using hipdnn_rt::Context;
using hipdnn_rt::LoadedProgram;
using hipdnn_rt::Memory;

constexpr std::int64_t kChannels = 8;
constexpr std::int64_t kSize = 6;
constexpr std::size_t kImage = kChannels * kSize * kSize;

void check_near(const std::vector<float>& got, const std::vector<float>& expected, double tolerance) {
  check::equal(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) check::near(static_cast<double>(got[i]), static_cast<double>(expected[i]), tolerance);
}

void test_values_when_steps_chain(const Libraries& libraries) {
  const auto program = relu_of_sum({2, 3, 5}).parse();
  Context context(LoadedProgram::load(open_host(libraries), program));
  const auto a = random_values(30, 3), b = random_values(30, 4);
  std::vector<float> expected(30);
  std::transform(a.begin(), a.end(), b.begin(), expected.begin(), [](float x, float y) { return std::max(x + y, 0.0F); });
  check_near(run_once(context, *program, {a, b}), expected, 0);
}

void test_values_when_weights_are_constant(const Libraries& libraries) {
  const Sample sample = two_convolutions(kChannels, kSize, false);
  const auto program = sample.parse();
  Context context(LoadedProgram::load(open_host(libraries), program));
  const auto x = random_values(kImage, 5);
  check_near(run_once(context, *program, {x}), two_convolutions_reference(sample, kChannels, kSize, x), 1e-4);
}

void test_values_when_pointers_change(const Libraries& libraries) {
  const Sample sample = two_convolutions(kChannels, kSize, false);
  const auto program = sample.parse();
  Context context(LoadedProgram::load(open_host(libraries), program));
  std::vector<Array> inputs, outputs;
  for (std::uint32_t i = 0; i < 20; ++i) {
    inputs.emplace_back(random_values(kImage, 100 + i));
    outputs.emplace_back(kImage * sizeof(float));
  }
  // More pointers than a pack cache holds, then the same again, then crossed.
  for (std::size_t round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Array& output = outputs[round == 2 ? inputs.size() - 1 - i : i];
      const hipdnn_rt::InputArray in{inputs[i].data()};
      const hipdnn_rt::OutputArray out{output.data()};
      context.run({&in, 1}, {&out, 1});
      check_near(output.values(), two_convolutions_reference(sample, kChannels, kSize, inputs[i].values()), 1e-4);
    }
  }
}

void test_plan_shared_when_constants_are_equal(const Libraries& libraries) {
  const auto device = open_host(libraries);
  check::that(device->takes_constants(), "the host library offers the constants extension");
  const auto different = LoadedProgram::load(device, two_convolutions(kChannels, kSize, false).parse());
  check::equal(different->plan_count(), std::size_t{2});
  check::that(different->plan(0) != different->plan(1), "plans with different weights must differ");
  const auto shared = LoadedProgram::load(device, two_convolutions(kChannels, kSize, true).parse());
  check::equal(shared->plan_count(), std::size_t{1});
  check::that(shared->plan(0) == shared->plan(1), "plans with the same weights must be one");
  check::equal(device->plans().size(), std::size_t{3});
}

void test_plan_shared_when_programs_repeat_a_graph(const Libraries& libraries) {
  const auto device = open_host(libraries);
  const auto program = relu_of_sum({4, 4}).parse();
  const auto first = LoadedProgram::load(device, program);
  auto second = LoadedProgram::load(device, relu_of_sum({4, 4}).parse());
  check::that(first->plan(0) == second->plan(0), "equal graphs without constants share a plan");
  second.reset();
  check::equal(device->plans().size(), std::size_t{2});
}

void test_values_when_memory_is_the_devices(const Libraries& libraries) {
  Sample sample = two_convolutions(kChannels, kSize, false);
  sample.program["target"] = "hip";
  const auto program = sample.parse();
  const auto device = open_disguised(libraries);
  check::that(!device->takes_constants(), "the disguise hides the constants extension");
  const auto loaded = LoadedProgram::load(device, program);
  check::equal(loaded->plan_count(), std::size_t{1}, "plans without bound constants");
  check::that(loaded->constant(3) != program->constants()[0].data.data(), "constants must be uploaded");
  check::that(loaded->arena_bytes() >= 2 * kImage * sizeof(float), "the arena holds staged inputs and outputs");
  Context context(loaded);
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    const auto x = random_values(kImage, 50 + seed);
    check_near(run_once(context, *program, {x}), two_convolutions_reference(sample, kChannels, kSize, x), 1e-4);
  }
}

void test_not_staged_when_arrays_are_the_devices(const Libraries& libraries) {
  Sample sample = two_convolutions(kChannels, kSize, false);
  sample.program["target"] = "hip";
  Context context(LoadedProgram::load(open_disguised(libraries), sample.parse()));
  const Array x(random_values(kImage, 9));
  const Array y(kImage * sizeof(float));
  const hipdnn_rt::InputArray in{x.data(), Memory::device};
  const hipdnn_rt::OutputArray out{y.data(), Memory::device};
  context.run({&in, 1}, {&out, 1});
  check_near(y.values(), two_convolutions_reference(sample, kChannels, kSize, x.values()), 1e-4);
}

void test_copied_when_a_step_copies(const Libraries& libraries) {
  Sample sample = relu_of_sum({4});
  auto& steps = sample.program["steps"];
  const auto place = [](int buffer) { return nlohmann::json{{"buffer", buffer}, {"offset", 0}}; };
  steps[1] = {{"kind", "copy"}, {"name", "y"}, {"bytes", 16}, {"src", place(2)}, {"dst", place(3)}};
  const auto program = sample.parse();
  const auto loaded = LoadedProgram::load(open_host(libraries), program);
  check::that(loaded->plan(1) == nullptr, "a copy has no plan");
  Context context(loaded);
  check::equal(run_once(context, *program, {{1, 2, 3, 4}, {-5, 0, 0, 1}}), std::vector<float>{-4, 2, 3, 5});
}

void test_steps_timed_when_profiled(const Libraries& libraries) {
  const auto program = relu_of_sum({64, 64}).parse();
  Context context(LoadedProgram::load(open_host(libraries), program));
  const Array a(random_values(4096, 1)), b(random_values(4096, 2)), y(4096 * sizeof(float));
  const std::vector<hipdnn_rt::InputArray> inputs{{a.data()}, {b.data()}};
  const hipdnn_rt::OutputArray out{y.data()};
  const auto before = hipdnn_rt::Clock::now();
  const hipdnn_rt::TimedRun run = context.run_timed(inputs, {&out, 1});
  const auto after = hipdnn_rt::Clock::now();
  check::equal(run.elapsed_us.size(), std::size_t{2});
  for (const double us : run.elapsed_us) check::that(us >= 0, "a step took negative time");
  const std::chrono::duration<double, std::micro> steps(run.elapsed_us[0] + run.elapsed_us[1]);
  // An event's time is a float of milliseconds.
  constexpr std::chrono::microseconds rounding(1);
  check::that(run.began >= before - rounding && run.began + steps <= after + rounding, "steps lie outside of their run");
  check::near(static_cast<double>(y.values()[7]), static_cast<double>(std::max(a.values()[7] + b.values()[7], 0.0F)), 0);
}

void test_refused_when_arrays_do_not_fit(const Libraries& libraries) {
  const auto program = relu_of_sum({4}).parse();
  Context context(LoadedProgram::load(open_host(libraries), program));
  const Array a(64);
  const hipdnn_rt::OutputArray out{a.data()};
  const auto run = [&](const std::vector<hipdnn_rt::InputArray>& inputs) {
    return error_of<hipdnn_rt::InputError>([&] { context.run(inputs, {&out, 1}); });
  };
  check::contains(run({{a.data()}}), "inputs: expected 2 arrays, got 1");
  check::contains(run({{a.data()}, {nullptr}}), "'b': null pointer");
  check::contains(run({{a.data() + 1}, {a.data()}}), "'a': the array must be aligned to 16 bytes");
}

void test_refused_when_the_target_differs(const Libraries& libraries) {
  Sample sample = relu_of_sum({4});
  sample.program["target"] = "hip";
  const auto load = [&] { LoadedProgram::load(open_host(libraries), sample.parse()); };
  check::contains(error_of<hipdnn_rt::WrongTargetError>(load), "program.target: compiled for 'hip', port 'host' runs 'host'");
}

void test_reasons_given_when_no_engine_takes_a_graph(const Libraries& libraries) {
  const auto device = open_host(libraries);
  Sample sample = two_convolutions(2, 4, true);
  // A filter with one input channel more than the image.
  auto& tensors = sample.program["executables"][0]["descriptors"];
  tensors[1][1][2][2] = {2, 1, 3, 3};
  tensors[1][1][3][2] = {9, 9, 3, 1};
  tensors[0][1][2][2] = {1, 3, 4, 4};
  tensors[0][1][3][2] = {0, 0, 4, 1};
  const std::string message = error_of<hipdnn_rt::DeviceError>([&] { LoadedProgram::load(device, sample.parse()); });
  check::contains(message, "conv");
  check::that(message.size() > 40, "the library's own words are missing: " + message);
}

void test_all_refused_graphs_are_named_with_their_steps(const Libraries& libraries) {
  const auto device = open_host(libraries);
  Sample sample = two_convolutions(2, 4, false);
  auto& tensors = sample.program["executables"][0]["descriptors"];
  tensors[1][1][2][2] = {2, 1, 3, 3};
  tensors[1][1][3][2] = {9, 9, 3, 1};
  tensors[0][1][2][2] = {1, 3, 4, 4};
  tensors[0][1][3][2] = {0, 0, 4, 1};
  const auto refusals_of = [&] {
    try {
      LoadedProgram::load(device, sample.parse());
    } catch (const hipdnn_rt::PlanRefusedError& error) {
      return error.refusals();
    }
    return std::vector<hipdnn_rt::RefusedPlan>();
  };
  const std::vector<hipdnn_rt::RefusedPlan> shared = refusals_of();
  check::equal(shared.size(), 1U, "graphs refused, where two steps share one");
  check::equal(shared.at(0).nodes, std::string("first, second"));
  auto other = sample.program["executables"][0];
  other["name"] = "g_other";
  sample.program["executables"].push_back(other);
  sample.program["steps"][1]["executable"] = 1;
  const std::vector<hipdnn_rt::RefusedPlan> both = refusals_of();
  check::equal(both.size(), 2U, "graphs refused");
  check::equal(both.at(1).graph, std::string("g_other"));
  check::equal(both.at(1).nodes, std::string("second"));
  check::that(!both.at(0).reason.empty() && !both.at(1).reason.empty(), "the library's own words are missing");
}

/// A file whose roles pass for those of another graph: the sum's second operand in the place of its result, and the other way round.
void test_refused_when_a_graph_writes_what_the_program_says_is_read(const Libraries& libraries) {
  Sample sample = relu_of_sum({4});
  auto& operands = sample.program["executables"][0]["operands"];
  std::swap(operands[1]["role"], operands[2]["role"]);
  auto& places = sample.program["steps"][0]["operands"];
  std::swap(places[1], places[2]);
  const auto load = [&] { LoadedProgram::load(open_host(libraries), sample.parse()); };
  check::contains(error_of<hipdnn_rt::ProgramError>(load), "add (add): operand with uid 2: expected role \"in\": no operation writes it");
  std::swap(operands[1]["role"], operands[2]["role"]);
  operands[0]["role"] = "out";
  places[0] = places[1];
  std::swap(places[1], places[2]);
  check::contains(error_of<hipdnn_rt::ProgramError>(load), "operand with uid 1: expected role \"in\": no operation writes it");
}

/// The same descriptors with the same roles one after the other, but of other operands, are another plan's.
void test_roles_are_compared_when_an_honest_program_has_the_plan(const Libraries& libraries) {
  const auto device = open_host(libraries);
  Sample sample = relu_of_sum({4});
  LoadedProgram::load(device, sample.parse());
  auto& operands = sample.program["executables"][0]["operands"];
  std::swap(operands[1]["uid"], operands[2]["uid"]);
  check::contains(error_of<hipdnn_rt::ProgramError>([&] { LoadedProgram::load(device, sample.parse()); }), "expected role");
}

void test_library_named_when_it_is_missing() {
  const auto message = [](const char* port, const char* folder) {
    return error_of<hipdnn_rt::DeviceError>([&] { hipdnn_rt::Library::open(port, folder); });
  };
  check::contains(message("vulkan", ""), "port 'vulkan' is unknown: expected one of 'host', 'hip'");
  check::contains(message("host", "/nonexistent"), "port 'host': cannot open libhipdnn_host.so");
  check::contains(message("host", "/nonexistent"), "-DHIPDNN_MLIR_HOST_PORT=OFF has no port 'host'");
}

void test_symbol_and_version_named_when_a_library_is_too_old(const Libraries& libraries) {
  const std::string message = error_of<hipdnn_rt::DeviceError>([&] { hipdnn_rt::Library::open("hip", libraries.old); });
  check::contains(message, "libhipdnn_backend.so (hipDNN 0.5.0.0): the symbol hipdnnDestroy is missing: the library is too old");
  check::contains(message, "install ROCm Core SDK 10.0 or newer with its hipDNN");
}

void test_library_without_tensors_is_too_old(const Libraries& libraries) {
  const std::string message = error_of<hipdnn_rt::DeviceError>([&] { hipdnn_rt::Library::open("hip", libraries.early); });
  check::contains(message, "libhipdnn_backend.so (hipDNN 0.0.1): it has no descriptors of tensors, convolutions, matmuls, pointwise operations: ");
  check::contains(message, "install ROCm Core SDK 10.0 or newer with its hipDNN");
}

void test_refused_when_the_device_does_not_exist(const Libraries& libraries) {
  const auto open = [&] { hipdnn_rt::Device(hipdnn_rt::Library::open("host", libraries.host), {.device = 7, .threads = 1}); };
  check::contains(error_of<hipdnn_rt::DeviceError>(open), "device 7 does not exist");
}

}  // namespace

void add_run_cases(check::Suite& suite, const Libraries& libraries) {
  suite.add("run: values when steps chain", [=] { test_values_when_steps_chain(libraries); });
  suite.add("run: values when weights are constant", [=] { test_values_when_weights_are_constant(libraries); });
  suite.add("run: values when pointers change", [=] { test_values_when_pointers_change(libraries); });
  suite.add("run: plan shared when constants are equal", [=] { test_plan_shared_when_constants_are_equal(libraries); });
  suite.add("run: plan shared when programs repeat a graph", [=] { test_plan_shared_when_programs_repeat_a_graph(libraries); });
  suite.add("run: values when memory is the device's", [=] { test_values_when_memory_is_the_devices(libraries); });
  suite.add("run: not staged when arrays are the device's", [=] { test_not_staged_when_arrays_are_the_devices(libraries); });
  suite.add("run: copied when a step copies", [=] { test_copied_when_a_step_copies(libraries); });
  suite.add("run: steps timed when profiled", [=] { test_steps_timed_when_profiled(libraries); });
  suite.add("run: refused when arrays do not fit", [=] { test_refused_when_arrays_do_not_fit(libraries); });
  suite.add("run: refused when the target differs", [=] { test_refused_when_the_target_differs(libraries); });
  suite.add("run: reasons given when no engine takes a graph", [=] { test_reasons_given_when_no_engine_takes_a_graph(libraries); });
  suite.add("run: all refused graphs named with their steps", [=] { test_all_refused_graphs_are_named_with_their_steps(libraries); });
  suite.add("run: roles are compared when an honest program has the plan",
            [=] { test_roles_are_compared_when_an_honest_program_has_the_plan(libraries); });
  suite.add("run: refused when a graph writes what the program says is read",
            [=] { test_refused_when_a_graph_writes_what_the_program_says_is_read(libraries); });
  suite.add("run: library named when it is missing", test_library_named_when_it_is_missing);
  suite.add("run: library without tensors is too old", [=] { test_library_without_tensors_is_too_old(libraries); });
  suite.add("run: symbol and version named when a library is too old",
            [=] { test_symbol_and_version_named_when_a_library_is_too_old(libraries); });
  suite.add("run: refused when the device does not exist", [=] { test_refused_when_the_device_does_not_exist(libraries); });
}

}  // namespace runtime_tests
