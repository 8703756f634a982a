// runtime_overhead HOST_FOLDER: what one run of a one-step program costs over the library's own hipdnnBackendExecute, on one thread.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "device/error.h"
#include "execute/context_pool.h"
#include "sample_program.h"
#include "session.h"

namespace {

using namespace runtime_tests;

constexpr int kBatches = 60;
constexpr int kCallsPerBatch = 2000;

/// The program and `sets` sets of arrays for it, which runs use in turn.
struct Case {
  Case(const Sample& sample, const std::shared_ptr<const hipdnn_rt::Device>& device, std::size_t sets)
      : program(sample.parse()), loaded(hipdnn_rt::LoadedProgram::load(device, program)) {
    for (std::size_t i = 0; i < sets; ++i) {
      inputs.push_back({arrays.emplace_back(program->inputs().at(0).bytes).data()});
      outputs.push_back({arrays.emplace_back(program->outputs().at(0).bytes).data()});
    }
  }
  std::span<const hipdnn_rt::InputArray> input(std::size_t run) const { return {&inputs[run % inputs.size()], 1}; }
  std::span<const hipdnn_rt::OutputArray> output(std::size_t run) const { return {&outputs[run % outputs.size()], 1}; }

  std::shared_ptr<const hipdnn_rt::Program> program;
  std::shared_ptr<const hipdnn_rt::LoadedProgram> loaded;
  std::vector<Array> arrays;
  std::vector<hipdnn_rt::InputArray> inputs;
  std::vector<hipdnn_rt::OutputArray> outputs;
};

/// The library alone: one finalized plan and pack, executed again and again.
class Bare {
 public:
  explicit Bare(const Case& c)
      : api_(c.loaded->device().library().hipdnn()), handle_(c.loaded->device().create_handle(nullptr)), plan_(c.loaded->plan(0)) {
    const auto& step = std::get<hipdnn_rt::ExecuteStep>(c.program->steps()[0].action);
    std::vector<std::int64_t> uids;
    std::vector<void*> pointers;
    for (const hipdnn_rt::Operand& operand : c.program->executables()[step.executable].operands) uids.push_back(operand.uid);
    for (const hipdnn_rt::View& view : step.operands) {
      const hipdnn_rt::BufferKind kind = c.program->buffers()[view.buffer].kind;
      pointers.push_back(kind == hipdnn_rt::BufferKind::input    ? const_cast<void*>(c.inputs[0].pointer)
                         : kind == hipdnn_rt::BufferKind::output ? c.outputs[0].pointer
                                                                 : c.loaded->constant(view.buffer));
    }
    workspace_ = c.loaded->device().allocate(plan_->workspace_bytes() + 64);
    pack_ = hipdnn_rt::make_variant_pack(c.loaded->device().shared_library(), uids, pointers, workspace_.get(), "pack");
  }

  void execute() const {
    const hipdnnStatus_t status = api_.execute(handle_.get(), plan_->descriptor().get(), pack_.get());
    if (status != HIPDNN_STATUS_SUCCESS) hipdnn_rt::check(api_, status, "hipdnnBackendExecute");
  }

 private:
  const hipdnn_rt::HipdnnApi& api_;
  hipdnn_rt::Handle handle_;
  const hipdnn_rt::Plan* plan_;
  hipdnn_rt::DeviceBuffer workspace_;
  hipdnn_rt::Descriptor pack_;
};

/// Nanoseconds of one call: the median over batches, so that what interrupts some of them does not count.
template <typename Call>
double nanoseconds(const Call& call) {
  std::vector<double> batches;
  std::size_t run = 0;
  for (int b = 0; b < kBatches; ++b) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCallsPerBatch; ++i) call(run++);
    const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
    batches.push_back(elapsed.count() / kCallsPerBatch);
  }
  std::ranges::nth_element(batches, batches.begin() + kBatches / 2);
  return batches[kBatches / 2];
}

void measure(const char* name, const Sample& sample, const std::shared_ptr<const hipdnn_rt::Device>& device) {
  std::printf("%s\n", name);
  double bare_ns = 0;
  const auto row = [&](const std::string& what, double ns) { std::printf("  %-48s %8.1f ns  %+8.1f\n", what.c_str(), ns, ns - bare_ns); };
  for (const std::size_t sets : {1U, 8U, 24U}) {
    const Case c(sample, device, sets);
    hipdnn_rt::Context context(c.loaded);
    hipdnn_rt::ContextPool pool(c.loaded);
    const hipdnn_rt::Stream stream = device->create_stream();
    if (sets == 1) {
      const Bare bare(c);
      bare_ns = nanoseconds([&](std::size_t) { bare.execute(); });
      row("hipdnnBackendExecute", bare_ns);
    }
    const std::string arrays = ", " + std::to_string(sets) + " sets of arrays";
    row("Context::run" + arrays, nanoseconds([&](std::size_t i) { context.run(c.input(i), c.output(i)); }));
    row("Context::enqueue" + arrays, nanoseconds([&](std::size_t i) { context.enqueue(c.input(i), c.output(i), stream.get()); }));
    row("ContextPool::run" + arrays, nanoseconds([&](std::size_t i) { pool.run(c.input(i), c.output(i)); }));
    row("ContextPool::enqueue" + arrays, nanoseconds([&](std::size_t i) { pool.enqueue(c.input(i), c.output(i), stream.get()); }));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s HOST_FOLDER\n", argv[0]);
    return 2;
  }
  try {
    const auto device = open_host({argv[1], "", ""});
    measure("relu of 1 element", relu({1}), device);
    measure("relu of 1000 elements", relu({1000}), device);
    measure("convolution 3x3 of 8 channels, 4x4", one_convolution(8, 4), device);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
