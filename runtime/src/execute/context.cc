#include "execute/context.h"

#include <algorithm>
#include <cstdint>

#include "device/error.h"

namespace hipdnn_rt {
namespace {

void check_pointer(const Argument& argument, const void* pointer) {
  if (argument.bytes == 0) return;
  if (pointer == nullptr) throw InputError("'" + argument.name + "': null pointer");
  if (reinterpret_cast<std::uintptr_t>(pointer) % kPointerAlignment != 0) {
    throw InputError("'" + argument.name + "': the array must be aligned to " + std::to_string(kPointerAlignment) + " bytes");
  }
}

void check_count(const char* what, std::size_t got, std::size_t expected) {
  if (got != expected) throw InputError(std::string(what) + ": expected " + std::to_string(expected) + " arrays, got " + std::to_string(got));
}

}  // namespace

Context::Context(std::shared_ptr<const LoadedProgram> program) : program_(std::move(program)) {
  const Device& device = program_->device();
  const std::uint64_t alignment = device.port().arena_alignment;
  if (program_->arena_bytes() > 0) {
    memory_ = device.allocate(program_->arena_bytes() + alignment);
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    arena_ = static_cast<std::byte*>(memory_.get()) + (alignment - address % alignment) % alignment;
  }
  stream_ = device.create_stream();
  handle_ = device.create_handle(stream_.get());
  current_ = stream_.get();
  end_ = device.create_event(false);

  const std::vector<Buffer>& buffers = program_->program().buffers();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    buffers_.push_back(buffers[i].kind == BufferKind::constant ? static_cast<std::byte*>(program_->constant(i))
                                                               : arena_ + program_->buffer_offset(i));
  }
  executions_ = std::vector<Execution>(program_->program().steps().size());
  launches_ = std::vector<Launch>(executions_.size());
  const auto launches = [&](const Step& step) {
    const auto* action = std::get_if<LaunchStep>(&step.action);
    return action != nullptr && std::ranges::none_of(program_->program().kernels()[action->kernel].grid, [](auto blocks) { return blocks == 0; });
  };
  const auto& steps = program_->program().steps();
  first_launch_ = static_cast<std::size_t>(std::ranges::find_if(steps, launches) - steps.begin());
  for (std::size_t s = 0; s < executions_.size(); ++s) prepare_step(s);
  if (device.uses_graphs()) graphs_.emplace(device);
}

Context::~Context() {
  // The arena must outlive the work that uses it.
  if (is_pending_) end_.library().hip().event_synchronize(end_.get());
}

void Context::prepare_step(std::size_t step) {
  const Program& program = program_->program();
  if (const auto* action = std::get_if<LaunchStep>(&program.steps()[step].action)) {
    Launch& launch = launches_[step];
    launch.pointers.resize(action->operands.size());
    for (const std::size_t argument : program.kernels()[action->kernel].arguments) {
      launch.parameters.push_back(&launch.pointers[argument]);
    }
  }
  const Plan* plan = program_->plan(step);
  if (plan == nullptr) return;
  const auto& action = std::get<ExecuteStep>(program.steps()[step].action);
  Execution& execution = executions_[step];
  execution.views = action.operands;
  if (plan->workspace_bytes() > 0) execution.workspace = arena_ + program_->workspace_offset(step);
  for (const Operand& operand : program.executables()[action.executable].operands) execution.uids.push_back(operand.uid);
  for (std::size_t i = 0; i < execution.views.size(); ++i) {
    const BufferKind kind = program.buffers()[execution.views[i].buffer].kind;
    if (kind == BufferKind::input || kind == BufferKind::output) execution.varying.push_back(i);
  }
  pointers_.resize(std::max(pointers_.size(), execution.views.size()));
  if (!execution.varying.empty()) {
    execution.cache = std::make_unique<VariantPackCache>(execution.varying.size());
  } else {
    std::transform(execution.views.begin(), execution.views.end(), pointers_.begin(), [&](const View& view) { return resolve(view); });
    execution.pack = make_variant_pack(stream_.shared_library(), execution.uids, {pointers_.data(), execution.uids.size()},
                                       execution.workspace, "variant pack of step " + program.steps()[step].name);
  }
}

void Context::run(std::span<const InputArray> inputs, std::span<const OutputArray> outputs, const std::function<void()>& between) {
  run_all(inputs, outputs, nullptr, between);
}

TimedRun Context::run_timed(std::span<const InputArray> inputs, std::span<const OutputArray> outputs) {
  const HipApi& hip = stream_.library().hip();
  Timing timing;
  for (std::size_t i = 0; i <= executions_.size(); ++i) timing.events.push_back(program_->device().create_event());
  run_all(inputs, outputs, &timing, {});
  TimedRun run;
  double total_us = 0;
  for (std::size_t i = 0; i < executions_.size(); ++i) {
    float elapsed_ms = 0;
    check(hip, hip.event_elapsed_time(&elapsed_ms, timing.events[i].get(), timing.events[i + 1].get()), "hipEventElapsedTime");
    run.elapsed_us.push_back(1e3 * static_cast<double>(elapsed_ms));
    total_us += run.elapsed_us.back();
  }
  run.began = timing.ended - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::micro>(total_us));
  return run;
}

void Context::enqueue(std::span<const InputArray> inputs, std::span<const OutputArray> outputs, hipStream_t stream) {
  const HipApi& hip = stream_.library().hip();
  begin(inputs, outputs, stream);
  try {
    queue_steps(inputs, outputs, nullptr, {});
    check(hip, hip.event_record(end_.get(), stream), "hipEventRecord");
  } catch (...) {
    abandon();
    throw;
  }
  is_pending_ = true;
}

void Context::run_all(std::span<const InputArray> inputs, std::span<const OutputArray> outputs, Timing* timing,
                      const std::function<void()>& between) {
  const HipApi& hip = stream_.library().hip();
  begin(inputs, outputs, stream_.get());
  try {
    queue_steps(inputs, outputs, timing, between);
    check(hip, hip.stream_synchronize(stream_.get()), "hipStreamSynchronize");
  } catch (...) {
    abandon();
    throw;
  }
  is_pending_ = false;
}

void Context::begin(std::span<const InputArray> inputs, std::span<const OutputArray> outputs, hipStream_t stream) {
  program_->device().activate();
  bind(inputs, outputs);
  switch_to(stream);
}

void Context::abandon() {
  // No event marks the end of what has been queued so far. A failure of this call tells nothing new.
  stream_.library().hip().stream_synchronize(current_);
  is_pending_ = false;
}

void Context::switch_to(hipStream_t stream) {
  // The name of a per-thread stream stands for another stream on each thread.
  if (stream == current_ && stream != hipStreamPerThread) return;
  const Library& library = stream_.library();
  program_->device().check_stream(stream);
  if (is_pending_) check(library.hip(), library.hip().stream_wait_event(stream, end_.get(), 0), "hipStreamWaitEvent");
  check(library.hipdnn(), library.hipdnn().set_stream(handle_.get(), stream), "hipdnnSetStream");
  current_ = stream;
}

void Context::queue_timed_steps(Timing& timing) {
  const HipApi& hip = stream_.library().hip();
  const auto record = [&](std::size_t event) { check(hip, hip.event_record(timing.events[event].get(), current_), "hipEventRecord"); };
  record(0);
  for (std::size_t s = 0; s < executions_.size(); ++s) {
    run_step(s);
    record(s + 1);
  }
  // Before copies to the host are queued: the events tell times between steps alone, the host when all that was.
  check(hip, hip.event_synchronize(timing.events.back().get()), "hipEventSynchronize");
  timing.ended = Clock::now();
}

void Context::queue_steps(std::span<const InputArray> inputs, std::span<const OutputArray> outputs, Timing* timing,
                          const std::function<void()>& between) {
  const Program& program = program_->program();
  const auto is_staged = [&](Memory memory) { return program_->stages_host_arrays() && memory == Memory::host; };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Argument& input = program.inputs()[i];
    if (is_staged(inputs[i].memory)) copy(buffers_[input.buffer], inputs[i].pointer, input.bytes, hipMemcpyHostToDevice);
  }
  // A stream that is only a name, the default one, cannot be recorded.
  const bool is_recorded = graphs_ && timing == nullptr && current_ != nullptr && current_ != hipStreamPerThread;
  if (timing != nullptr) {
    queue_timed_steps(*timing);
  } else if (is_recorded) {
    run_recorded();
  } else {
    for (std::size_t s = 0; s < executions_.size(); ++s) {
      run_step(s);
      if (between) between();
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Argument& output = program.outputs()[i];
    if (is_staged(outputs[i].memory)) copy(outputs[i].pointer, buffers_[output.buffer], output.bytes, hipMemcpyDeviceToHost);
  }
}

void Context::bind(std::span<const InputArray> inputs, std::span<const OutputArray> outputs) {
  const Program& program = program_->program();
  check_count("inputs", inputs.size(), program.inputs().size());
  check_count("outputs", outputs.size(), program.outputs().size());
  const auto address = [&](const Argument& argument, const void* pointer, Memory memory) {
    check_pointer(argument, pointer);
    if (program_->stages_host_arrays() && memory == Memory::host) return arena_ + program_->buffer_offset(argument.buffer);
    // The ABI's pointers are not const; the loader has checked that no step writes an input.
    return static_cast<std::byte*>(const_cast<void*>(pointer));
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Argument& input = program.inputs()[i];
    buffers_[input.buffer] = address(input, inputs[i].pointer, inputs[i].memory);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Argument& output = program.outputs()[i];
    buffers_[output.buffer] = address(output, outputs[i].pointer, outputs[i].memory);
  }
}

const Descriptor& Context::find_pack(std::size_t step) {
  Execution& execution = executions_[step];
  if (execution.varying.empty()) return execution.pack;
  const std::size_t count = execution.varying.size();
  for (std::size_t i = 0; i < count; ++i) pointers_[i] = resolve(execution.views[execution.varying[i]]);
  if (const Descriptor* known = execution.cache->find({pointers_.data(), count})) return *known;
  const std::vector<void*> key(pointers_.begin(), pointers_.begin() + static_cast<std::ptrdiff_t>(count));
  for (std::size_t i = 0; i < execution.views.size(); ++i) pointers_[i] = resolve(execution.views[i]);
  return execution.cache->insert(
      key, make_variant_pack(stream_.shared_library(), execution.uids, {pointers_.data(), execution.uids.size()}, execution.workspace,
                             "variant pack of step " + program_->program().steps()[step].name));
}

void Context::run_recorded() {
  addresses_.clear();
  for (const Argument& input : program_->program().inputs()) addresses_.push_back(buffers_[input.buffer]);
  for (const Argument& output : program_->program().outputs()) addresses_.push_back(buffers_[output.buffer]);
  graphs_->run(addresses_, current_, [&] {
    for (std::size_t s = 0; s < executions_.size(); ++s) run_step(s);
  });
}

void Context::run_step(std::size_t step) {
  const Step& description = program_->program().steps()[step];
  if (const auto* action = std::get_if<CopyStep>(&description.action)) {
    copy(resolve(action->destination), resolve(action->source), action->bytes, hipMemcpyDeviceToDevice);
    return;
  }
  if (const auto* action = std::get_if<LaunchStep>(&description.action)) {
    launch(step, *action);
    return;
  }
  const HipdnnApi& api = stream_.library().hipdnn();
  const Descriptor& pack = find_pack(step);
  const hipdnnStatus_t status = api.execute(handle_.get(), program_->plan(step)->descriptor().get(), pack.get());
  if (status != HIPDNN_STATUS_SUCCESS) check(api, status, "hipdnnBackendExecute(step " + description.name + ")");
}

void Context::launch(std::size_t step, const LaunchStep& action) {
  Launch& arguments = launches_[step];
  for (std::size_t i = 0; i < arguments.pointers.size(); ++i) arguments.pointers[i] = resolve(action.operands[i]);
  const HipApi& hip = stream_.library().hip();
  const Kernel& kernel = program_->program().kernels()[action.kernel];
  const auto& blocks = kernel.grid;
  const auto& threads = kernel.block;
  if (blocks[0] == 0 || blocks[1] == 0 || blocks[2] == 0) return;
  // A kernel may read what its program does not write before it waits, so the first one is behind all that its caller has queued.
  const bool overlaps = kernel.waits_itself && step != first_launch_ && hip.launch_waiting_kernel != nullptr;
  const auto launch = overlaps ? hip.launch_waiting_kernel : hip.module_launch_kernel;
  const hipError_t status = launch(program_->function(action.kernel), blocks[0], blocks[1], blocks[2], threads[0], threads[1], threads[2],
                                   kernel.shared_bytes, current_, arguments.parameters.data(), nullptr);
  if (status == hipSuccess) return;
  const std::string failure =
      "hipModuleLaunchKernel(step " + program_->program().steps()[step].name + "): " + describe_kernel_failure(hip, status);
  if (program_->device().port().device_memory_is_host_memory) throw DeviceError(failure);
  const auto text = [](const auto& sizes) {
    return std::to_string(sizes[0]) + "x" + std::to_string(sizes[1]) + "x" + std::to_string(sizes[2]);
  };
  throw DeviceError(failure + " (" + text(blocks) + " blocks of " + text(threads) + " threads of '" + kernel.symbol +
                    "'); compile the model again with --target " + program_->device().target());
}

void Context::copy(void* destination, const void* source, std::size_t bytes, hipMemcpyKind kind) {
  if (bytes == 0) return;
  const HipApi& hip = stream_.library().hip();
  check(hip, hip.memcpy_async(destination, source, bytes, kind, current_), "hipMemcpyAsync");
}

}  // namespace hipdnn_rt
