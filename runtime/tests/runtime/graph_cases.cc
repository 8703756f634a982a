// Runs recorded as graphs: when they are, that replays read what arrays hold by then, and that a failure ends the recording.
#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cases.h"
#include "deferred_port.h"
#include "device/error.h"
#include "sample_program.h"
#include "session.h"

namespace runtime_tests {
namespace {

using hipdnn_rt::Context;
using hipdnn_rt::LoadedProgram;

const std::vector<std::int32_t> kIndices{2, 0, -1};

/// A program of kernels and one of graphs, on a port that records.
struct Recording {
  explicit Recording(const Libraries& libraries) : device(open_deferred(libraries, true)), stream(device->create_stream()) {
    void* const port = dlopen((libraries.deferred + "/libhipdnn_backend.so").c_str(), RTLD_NOW | RTLD_NOLOAD);
    check::that(port != nullptr, "the deferred port is not loaded");
    count = reinterpret_cast<deferred_count_graphs_t>(dlsym(port, "deferred_count_graphs"));
    fail_after = reinterpret_cast<deferred_fail_after_t>(dlsym(port, "deferred_fail_after"));
    counts();
  }

  std::unique_ptr<Context> context(Sample sample) const {
    sample.program["target"] = "hip";
    return std::make_unique<Context>(LoadedProgram::load(device, sample.parse()));
  }

  /// Graphs made and launched since the last call.
  std::pair<int, int> counts() const {
    std::pair<int, int> found;
    count(&found.first, &found.second);
    return found;
  }

  void enqueue(Context& context, std::vector<const Array*> inputs, const Array& output) const {
    std::vector<hipdnn_rt::InputArray> ins;
    for (const Array* input : inputs) ins.push_back({input->data(), hipdnn_rt::Memory::device});
    const hipdnn_rt::OutputArray out{output.data(), hipdnn_rt::Memory::device};
    context.enqueue(ins, {&out, 1}, stream.get());
    hipdnn_rt::check(device->library().hip(), device->library().hip().stream_synchronize(stream.get()), "hipStreamSynchronize");
  }

  std::shared_ptr<const hipdnn_rt::Device> device;
  hipdnn_rt::Stream stream;
  deferred_count_graphs_t count;
  deferred_fail_after_t fail_after;
};

void test_recorded_when_addresses_repeat(const Libraries& libraries) {
  const Recording port(libraries);
  const auto context = port.context(doubled_rows(kRows, kColumns, kIndices));
  const Array x(random_values(kRows * kColumns, 1)), y(3 * kColumns * sizeof(float));
  const std::pair<int, int> expected[] = {{0, 0}, {1, 1}, {0, 1}, {0, 1}};
  for (std::uint32_t run = 0; run < 4; ++run) {
    const auto values = random_values(kRows * kColumns, run);
    std::copy(values.begin(), values.end(), x.data());
    std::fill_n(y.data(), 3 * kColumns, -7.0F);
    port.enqueue(*context, {&x}, y);
    check::equal(y.values(), doubled_rows_of(values, kIndices));
    check::that(port.counts() == expected[run], "graphs made and launched in run " + std::to_string(run));
  }
}

void test_recorded_anew_when_addresses_change(const Libraries& libraries) {
  const Recording port(libraries);
  const auto context = port.context(relu_of_sum({8}));
  const Array a(random_values(8, 1)), b(random_values(8, 2)), first(8 * sizeof(float)), second(8 * sizeof(float));
  for (const Array* y : {&first, &second, &first, &second, &first}) {
    port.enqueue(*context, {&a, &b}, *y);
    for (std::size_t i = 0; i < 8; ++i) check::equal(y->data()[i], std::max(a.data()[i] + b.data()[i], 0.0F), "value");
  }
  check::that(port.counts() == std::pair{2, 3}, "two graphs, three launches");
}

void test_the_stream_is_of_use_when_a_recorded_step_fails(const Libraries& libraries) {
  const Recording port(libraries);
  const auto context = port.context(relu_of_sum({8}));
  const Array a(random_values(8, 1)), b(random_values(8, 2)), y(8 * sizeof(float));
  port.enqueue(*context, {&a, &b}, y);
  port.fail_after(1);  // the second step of the recording
  check::contains(error_of<hipdnn_rt::DeviceError>([&] { port.enqueue(*context, {&a, &b}, y); }), "hipdnnBackendExecute");
  port.fail_after(std::numeric_limits<int>::max());
  for (int run = 0; run < 2; ++run) port.enqueue(*context, {&a, &b}, y);
  check::that(port.counts() == std::pair{1, 2}, "recorded at the next run");
}

void test_run_by_step_when_the_port_records_nothing(const Libraries& libraries) {
  const auto device =
      std::make_shared<const hipdnn_rt::Device>(hipdnn_rt::Library::open("host", libraries.host), hipdnn_rt::DeviceOptions{.threads = 1, .graph_capture = true});
  check::that(!device->uses_graphs(), "the host port has no graphs");
  const auto program = doubled_rows(kRows, kColumns, kIndices).parse();
  Context context(LoadedProgram::load(device, program));
  const auto x = random_values(kRows * kColumns, 5);
  for (int run = 0; run < 3; ++run) check::equal(run_once(context, *program, {x}), doubled_rows_of(x, kIndices));
}

}  // namespace

void add_graph_cases(check::Suite& suite, const Libraries& libraries) {
  suite.add("graphs: recorded when addresses repeat", [=] { test_recorded_when_addresses_repeat(libraries); });
  suite.add("graphs: recorded anew when addresses change", [=] { test_recorded_anew_when_addresses_change(libraries); });
  suite.add("graphs: the stream is of use when a recorded step fails", [=] { test_the_stream_is_of_use_when_a_recorded_step_fails(libraries); });
  suite.add("graphs: run by step when the port records nothing", [=] { test_run_by_step_when_the_port_records_nothing(libraries); });
}

}  // namespace runtime_tests
