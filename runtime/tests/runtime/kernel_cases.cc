// Kernels and launch steps: what the loader refuses, values, pointers that change, failures at load and at run.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "cases.h"
#include "deferred_port.h"
#include "device/error.h"
#include "sample_program.h"
#include "session.h"

namespace runtime_tests {
namespace {

using hipdnn_rt::Context;
using hipdnn_rt::LoadedProgram;
using hipdnn_rt::ProgramError;
using nlohmann::json;

void test_read_when_well_formed() {
  const Sample sample = doubled_rows(kRows, kColumns, {3, -4});
  const auto program = sample.parse();
  check::equal(program->kernels().size(), std::size_t{2});
  const hipdnn_rt::Kernel& gather = program->kernels()[0];
  check::equal(gather.function, std::string("gather"));
  check::equal(gather.operands[0].extent_bytes, std::uint64_t{48});
  check::equal(gather.operands[1].alignment, std::uint64_t{4});
  check::that(gather.operands[2].is_output && !gather.operands[1].is_output, "roles");
  check::that(json::parse(gather.image) == json{{"function", "gather"}, {"tensors", sample.program["kernels"][0]["tensors"]}, {"attributes", {{"axis", 0}}}},
              "the image is function, tensors and attributes");
  check::equal(std::get<hipdnn_rt::LaunchStep>(program->steps()[1].action).kernel, std::uint32_t{1});
}

void test_refused_when_a_field_is_wrong() {
  const json huge = 9'223'372'036'854'775'807;
  const std::vector<std::pair<std::pair<const char*, json>, const char*>> edits{
      {{"/kernels", 5}, "program.kernels: expected an array, got 5"},
      {{"/kernels/0/name", nullptr}, "program.kernels[0].name"},
      {{"/kernels/0/function", 1}, "program.kernels[0].function: expected a string"},
      {{"/kernels/0/attributes", 1}, "program.kernels[0].attributes: expected an object"},
      {{"/kernels/0/tensors", json::object()}, "program.kernels[0].tensors: expected an array"},
      {{"/kernels/0/tensors/0/role", "inout"}, "program.kernels[0].tensors[0].role: expected one of \"in\", \"out\""},
      {{"/kernels/0/tensors/0/role", "out"}, "program.kernels[0].tensors[1].role: expected \"out\": ins come first"},
      {{"/kernels/0/tensors/0/dtype", "f8"}, "program.kernels[0].tensors[0].dtype: expected an element type"},
      {{"/kernels/0/tensors/0/dims/0", -1}, "program.kernels[0].tensors[0].dims[0]: expected an integer of at least 0, got -1"},
      {{"/kernels/0/tensors/0/dims", json::array({12})}, "program.kernels[0].tensors[0].strides: expected 1 strides"},
      {{"/kernels/0/tensors/0/strides/0", -3}, "program.kernels[0].tensors[0].strides[0]: expected an integer of at least 0"},
      {{"/kernels/0/tensors/0/strides/0", huge}, "program.kernels[0].tensors[0]: expected a tensor whose extent fits 63 bits"},
      {{"/kernels/0/tensors/2/strides/0", 0}, "program.kernels[0].tensors[2].strides[0]: expected a stride of at least 1"},
      {{"/kernels/0/tensors/0/strides/0", 4}, "program.steps[0].operands[0]: 60 bytes from offset 0 pass the end of buffer 0 (48 bytes)"},
      {{"/steps/0/kernel", 2}, "program.steps[0].kernel: expected an integer from 0 to 1, got 2"},
      {{"/steps/0/operands", json::array()}, "program.steps[0].operands: expected 3 operands"},
      {{"/steps/0/operands/1/offset", 2}, "pass the end of buffer 1"},
      {{"/steps/0/operands/2/buffer", 1}, "pass the end of buffer 1"},
      {{"/steps/0/operands/2/buffer", 0}, "program.steps[0].operands[2]: writes buffer 0 of kind input"},
      {{"/steps/0/operands/0/buffer", 3}, "pass the end of buffer 3"},
      {{"/steps/1/operands/0/buffer", 3}, "program.steps[1].operands[0]: reads buffer 3, which no earlier step has written"},
  };
  for (const auto& [edit, expected] : edits) {
    Sample sample = doubled_rows(kRows, kColumns, {3, 0});
    sample.program[json::json_pointer(edit.first)] = edit.second;
    const std::string message = error_of<ProgramError>([&] { sample.parse(); });
    check::that(message.find(expected) != std::string::npos, std::string(edit.first) + ": message '" + message + "' lacks '" + expected + "'");
  }
  Sample unaligned = doubled_rows(kRows, kColumns, {3, 0});
  unaligned.program["buffers"][2]["bytes"] = 32;
  unaligned.program["steps"][0]["operands"][2]["offset"] = 2;
  check::contains(error_of<ProgramError>([&] { unaligned.parse(); }), "operands[2].offset: expected a multiple of 4");
  Sample endless = doubled_rows(kRows, kColumns, {3, 0});
  endless.program["kernels"][0]["tensors"][0]["dims"][0] = 1LL << 60;
  endless.program["kernels"][0]["tensors"][0]["strides"][0] = 0;
  check::contains(error_of<ProgramError>([&] { endless.parse(); }), "program.kernels[0].tensors[0]: expected a tensor of at most 2^40 elements");
}

json code_of_gather() {
  return {{"function", "k"}, {"grid", {2, 1, 1}}, {"block", {64, 1, 1}}, {"arguments", {2, 0, 1}}, {"encoding", "base64"}, {"image", "AAEC/w=="}};
}

void test_code_is_read_when_well_formed() {
  Sample sample = doubled_rows(kRows, kColumns, {3, -4});
  sample.program["kernels"][0]["code"] = code_of_gather();
  const auto program = sample.parse();
  const hipdnn_rt::Kernel& kernel = program->kernels()[0];
  check::equal(kernel.symbol, std::string("k"));
  check::that(kernel.image == std::string("\0\1\2\xff", 4), "the image is decoded");
  check::that(kernel.arguments == std::vector<std::size_t>{2, 0, 1}, "arguments in the code's order");
  check::that(!kernel.waits_itself && kernel.shared_bytes == 0, "nothing is said");
  check::that(kernel.grid == std::array<std::uint32_t, 3>{2, 1, 1} && kernel.block == std::array<std::uint32_t, 3>{64, 1, 1}, "sizes of the launch");
}

void test_code_is_refused_when_a_field_is_wrong() {
  const std::vector<std::pair<std::pair<const char*, json>, const char*>> edits{
      {{"/code", 5}, "program.kernels[0].code"},
      {{"/code/function", 1}, "program.kernels[0].code.function: expected a string"},
      {{"/code/grid", {1, 1}}, "program.kernels[0].code.grid: expected 3 sizes"},
      {{"/code/grid/0", -1}, "program.kernels[0].code.grid[0]: expected an integer from 0"},
      {{"/code/block/0", 0}, "program.kernels[0].code.block[0]: expected an integer from 1 to 1024, got 0"},
      {{"/code/block/0", 1025}, "program.kernels[0].code.block[0]: expected an integer from 1 to 1024, got 1025"},
      {{"/code/arguments/0", 3}, "program.kernels[0].code.arguments[0]: expected an integer from 0 to 2, got 3"},
      {{"/code/waits", 1}, "program.kernels[0].code.waits: expected true or false"},
      {{"/code/shared_bytes", -1}, "program.kernels[0].code.shared_bytes: expected an integer from 0 to 2147483647, got -1"},
      {{"/code/encoding", "hex"}, "program.kernels[0].code.encoding: expected one of \"text\", \"base64\""},
      {{"/code/image", "A*=="}, "program.kernels[0].code.image: expected base64"},
  };
  for (const auto& [edit, expected] : edits) {
    Sample sample = doubled_rows(kRows, kColumns, {3, 0});
    sample.program["kernels"][0]["code"] = code_of_gather();
    sample.program["kernels"][0][json::json_pointer(edit.first)] = edit.second;
    const std::string message = error_of<ProgramError>([&] { sample.parse(); });
    check::that(message.find(expected) != std::string::npos, std::string(edit.first) + ": message '" + message + "' lacks '" + expected + "'");
  }
}

void test_values_when_pointers_change(const Libraries& libraries) {
  const std::vector<std::int32_t> indices{3, -4, 1, -1, 2};
  for (const bool is_disguised : {false, true}) {
    Sample sample = doubled_rows(kRows, kColumns, indices);
    if (is_disguised) sample.program["target"] = "hip";
    const auto program = sample.parse();
    Context context(LoadedProgram::load(is_disguised ? open_disguised(libraries) : open_host(libraries), program));
    for (std::uint32_t seed = 0; seed < 5; ++seed) {
      const auto x = random_values(kRows * kColumns, seed);
      check::equal(run_once(context, *program, {x}), doubled_rows_of(x, indices));
    }
  }
}

void test_values_when_streams_work_on_their_own_time(const Libraries& libraries) {
  const std::vector<std::int32_t> indices{2, 2, -1};
  Sample sample = doubled_rows(kRows, kColumns, indices);
  sample.program["target"] = "hip";
  const auto program = sample.parse();
  const auto device = open_deferred(libraries);
  Context context(LoadedProgram::load(device, program));
  const hipdnn_rt::Stream stream = device->create_stream();
  const auto x = random_values(kRows * kColumns, 1), z = random_values(kRows * kColumns, 2);
  const Array first(x), second(z), first_result(3 * kColumns * sizeof(float)), second_result(3 * kColumns * sizeof(float));
  const auto enqueue = [&](const Array& in, const Array& out) {
    const hipdnn_rt::InputArray input{in.data()};
    const hipdnn_rt::OutputArray output{out.data()};
    context.enqueue({&input, 1}, {&output, 1}, stream.get());
  };
  // The second call's pointers must not reach the first call's launches.
  enqueue(first, first_result);
  enqueue(second, second_result);
  hipdnn_rt::check(device->library().hip(), device->library().hip().stream_synchronize(stream.get()), "hipStreamSynchronize");
  check::equal(first_result.values(), doubled_rows_of(x, indices));
  check::equal(second_result.values(), doubled_rows_of(z, indices));
}

/// Rows of x doubled, whose kernels are code that waits itself: for a stand-in of a GPU, which takes the host's images.
Sample rows_by_waiting_code(const std::vector<std::int32_t>& indices) {
  Sample sample = doubled_rows(kRows, kColumns, indices);
  sample.program["target"] = "hip";
  for (json& kernel : sample.program["kernels"]) {
    const json image{{"function", kernel["function"]}, {"tensors", kernel["tensors"]}, {"attributes", kernel["attributes"]}};
    json arguments = json::array();
    for (std::size_t i = 0; i < kernel["tensors"].size(); ++i) arguments.push_back(i);
    kernel["code"] = {{"function", kernel["function"]}, {"grid", {1, 1, 1}}, {"block", {1, 1, 1}}, {"arguments", arguments},
                      {"encoding", "text"}, {"image", image.dump()}, {"waits", true}};
  }
  return sample;
}

void test_code_that_waits_is_launched_so_where_the_port_can(const Libraries& libraries) {
  const std::vector<std::int32_t> indices{3, 0};
  const auto x = random_values(kRows * kColumns, 1);
  const auto program = rows_by_waiting_code(indices).parse();
  Context context(LoadedProgram::load(open_deferred(libraries), program));
  void* const port = dlopen((libraries.deferred + "/libhipdnn_backend.so").c_str(), RTLD_NOW | RTLD_NOLOAD);
  check::that(port != nullptr, "the deferred port is not loaded");
  const auto count = reinterpret_cast<deferred_count_waiting_kernels_t>(dlsym(port, "deferred_count_waiting_kernels"));
  count();
  check::equal(run_once(context, *program, {x}), doubled_rows_of(x, indices));
  check::equal(count(), 1, "the first kernel of a run is behind all that its caller has queued");

  Context elsewhere(LoadedProgram::load(open_disguised(libraries), program));
  check::equal(run_once(elsewhere, *program, {x}), doubled_rows_of(x, indices));
}

/// AddressSanitizer watches: what a step reads may lie partly in what it writes.
void test_operands_may_overlap(const Libraries& libraries) {
  Sample sample = doubled_rows(kRows, kColumns, {2});
  json& program = sample.program;
  program["buffers"][2]["bytes"] = program["buffers"][2]["bytes"].get<int>() + 4;
  json kernel = program["kernels"][0], step = program["steps"][0];
  kernel["tensors"][0] = kernel["tensors"][2];
  kernel["tensors"][0]["role"] = "in";
  program["kernels"].push_back(kernel);
  step["kernel"] = 2;
  step["operands"][0]["buffer"] = 2;
  step["operands"][2]["offset"] = 4;
  sample.constants["zero"] = {0.0F};
  program["constants"].push_back({{"tensor", "zero"}, {"buffer", 4}});
  program["buffers"].push_back({{"kind", "constant"}, {"bytes", 4}});
  step["operands"][1]["buffer"] = 4;
  program["steps"].insert(program["steps"].begin() + 1, step);
  program["steps"][2]["operands"][0]["offset"] = 4;
  const auto parsed = sample.parse();
  Context context(LoadedProgram::load(open_host(libraries), parsed));
  const auto x = random_values(kRows * kColumns, 1);
  check::equal(run_once(context, *parsed, {x}), doubled_rows_of(x, {2}));
}

void test_large_launches_use_threads(const Libraries& libraries) {
  const std::vector<std::int32_t> indices(6000, 1);
  const auto program = doubled_rows(2, 100, indices).parse();
  const auto x = random_values(200, 1);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 3}) {
    Context context(LoadedProgram::load(open_host(libraries, threads), program));
    results.push_back(run_once(context, *program, {x}));
  }
  check::equal(results[0][123], 2 * x[123]);
  check::that(results[0] == results[1], "results depend on the threads");
}

void test_refused_when_the_port_refuses_a_kernel(const Libraries& libraries) {
  Sample sample = doubled_rows(kRows, kColumns, {0});
  sample.program["kernels"][0]["attributes"]["axis"] = 7;
  const auto load = [&] { LoadedProgram::load(open_host(libraries), sample.parse()); };
  check::contains(error_of<ProgramError>(load), "kernel k_gather (gather): hipModuleLoadData: attributes.axis: expected an integer from 0 to 1, got 7");
}

void test_step_named_when_a_launch_fails(const Libraries& libraries) {
  const auto program = doubled_rows(kRows, kColumns, {0, 4}).parse();
  Context context(LoadedProgram::load(open_host(libraries), program));
  const auto x = random_values(kRows * kColumns, 1);
  for (int i = 0; i < 2; ++i) {
    const auto run = [&] { run_once(context, *program, {x}); };
    check::contains(error_of<hipdnn_rt::DeviceError>(run), "hipModuleLaunchKernel(step rows): tensors[1]: index 4 is out of range for a dim of 4");
  }
}

}  // namespace

void add_kernel_cases(check::Suite& suite, const Libraries& libraries) {
  suite.add("kernels: read when well formed", test_read_when_well_formed);
  suite.add("kernels: refused when a field is wrong", test_refused_when_a_field_is_wrong);
  suite.add("kernels: code is read when well formed", test_code_is_read_when_well_formed);
  suite.add("kernels: code is refused when a field is wrong", test_code_is_refused_when_a_field_is_wrong);
  suite.add("kernels: values when pointers change", [=] { test_values_when_pointers_change(libraries); });
  suite.add("kernels: values when streams work on their own time", [=] { test_values_when_streams_work_on_their_own_time(libraries); });
  suite.add("kernels: code that waits is launched so where the port can", [=] { test_code_that_waits_is_launched_so_where_the_port_can(libraries); });
  suite.add("kernels: operands may overlap", [=] { test_operands_may_overlap(libraries); });
  suite.add("kernels: large launches use threads", [=] { test_large_launches_use_threads(libraries); });
  suite.add("kernels: refused when the port refuses a kernel", [=] { test_refused_when_the_port_refuses_a_kernel(libraries); });
  suite.add("kernels: step named when a launch fails", [=] { test_step_named_when_a_launch_fails(libraries); });
}

}  // namespace runtime_tests
