// Loaded programs for Python: sessions of one combination of sizes, runs bound to arrays, and the sessions of a program with dynamic dimensions.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "arrays.h"
#include "device/error.h"
#include "execute/context_pool.h"
#include "execute/size_cache.h"
#include "execute/step_label.h"
#include "program/dynamic_program.h"
#include "signals.h"
#include "work_rows.h"

namespace hipdnn_rt::bindings {

namespace nb = nanobind;

inline nb::dict plan_row(const Plan& plan) {
  nb::dict row;
  row["engine"] = plan.engine_name();
  row["engine_id"] = plan.engine_id();
  row["description"] = plan.description();
  row["workspace_bytes"] = plan.workspace_bytes();
  row["build_ms"] = plan.build_ms();
  row["timed_us"] = plan.timed_us();
  row["restored"] = plan.is_restored();
  return row;
}

/// A loaded program with its contexts and the memory of its outputs.
class Session {
 public:
  Session(std::shared_ptr<const Device> device, std::shared_ptr<const Program> program, std::shared_ptr<const ConstantMemory> constants)
      : device_(std::move(device)),
        program_(std::move(program)),
        outputs_(std::make_shared<OutputPool>(program_->outputs())),
        pool_(LoadedProgram::load(device_, program_, std::move(constants))) {}

  nb::list run(const nb::list& inputs, const nb::list& outputs) {
    const Call call(*this, inputs, outputs);
    wait_for(call);
    return call.results;
  }

  void enqueue(const nb::list& inputs, const nb::list& outputs, std::uintptr_t stream) {
    const Call call(*this, inputs, outputs);
    const nb::gil_scoped_release unlocked;
    queue(call, stream);
  }

  /// Per run when its first step began, in seconds of the steady clock, and microseconds of each step.
  std::vector<std::pair<double, std::vector<double>>> profile(const nb::list& inputs, int repeat) {
    nb::list fresh;
    for (std::size_t i = 0; i < program_->outputs().size(); ++i) fresh.append(nb::none());
    const Call call(*this, inputs, fresh);
    Signals signals;
    const nb::gil_scoped_release unlocked;
    std::vector<std::pair<double, std::vector<double>>> runs;
    for (int i = 0; i < repeat; ++i) {
      signals.check();
      TimedRun run = pool_.run_timed(call.inputs, call.outputs);
      runs.emplace_back(std::chrono::duration<double>(run.began.time_since_epoch()).count(), std::move(run.elapsed_us));
    }
    return runs;
  }

  std::vector<std::vector<std::int64_t>> output_dims() const {
    std::vector<std::vector<std::int64_t>> dims;
    for (const Argument& output : program_->outputs()) dims.push_back(output.dims);
    return dims;
  }

  nb::dict stats() const {
    const LoadedProgram& loaded = pool_.program();
    nb::dict row;
    row["arena_bytes"] = loaded.arena_bytes();
    row["largest_live_bytes"] = loaded.largest_live_bytes();
    row["constant_bytes"] = loaded.constant_bytes();
    row["steps"] = program_->steps().size();
    row["copy_steps"] = count_steps<CopyStep>();
    row["launch_steps"] = count_steps<LaunchStep>();
    row["executables"] = program_->executables().size();
    row["kernels"] = program_->kernels().size();
    row["plans"] = loaded.plan_count();
    row["contexts"] = pool_.context_count();
    row["plan_ms"] = loaded.plan_ms();
    row["load_ms"] = loaded.load_ms();
    return row;
  }

  /// (offset, bytes, first step, last step) of each buffer in the arena, then of each step's workspace; 0 bytes where there is none.
  nb::list arena() const {
    const LoadedProgram& loaded = pool_.program();
    nb::list rows;
    for (std::size_t i = 0; i < loaded.arena_requests().size(); ++i) {
      const ArenaRequest& request = loaded.arena_requests()[i];
      rows.append(nb::make_tuple(loaded.arena_offsets()[i], request.bytes, request.first, request.last));
    }
    return rows;
  }

  nb::list steps() const {
    nb::list rows;
    for (std::size_t s = 0; s < program_->steps().size(); ++s) {
      const Step& step = program_->steps()[s];
      const Plan* plan = pool_.program().plan(s);
      nb::dict row = plan ? plan_row(*plan) : nb::dict();
      const StepLabel label = label_of(pool_.program(), s);
      row["name"] = step.name;
      row["kind"] = std::string(label.kind);
      if (label.kind != "copy") row["summary"] = label.operations;
      if (const auto* execute = std::get_if<ExecuteStep>(&step.action)) {
        row["executable"] = program_->executables()[execute->executable].name;
      } else if (const auto* launch = std::get_if<LaunchStep>(&step.action)) {
        row["kernel"] = program_->kernels()[launch->kernel].name;
        row["function"] = program_->kernels()[launch->kernel].function;
      }
      rows.append(row);
    }
    return rows;
  }

  nb::list work() const { return work_rows(*program_); }

  /// The arrays of one call; alive, with their owners, until it ends.
  struct Call {
    Call(Session& session, const nb::list& given_inputs, const nb::list& given_outputs) {
      const Program& program = *session.program_;
      if (given_inputs.size() != program.inputs().size() || given_outputs.size() != program.outputs().size()) {
        throw InputError("expected " + std::to_string(program.inputs().size()) + " inputs and " + std::to_string(program.outputs().size()) +
                         " outputs, got " + std::to_string(given_inputs.size()) + " and " + std::to_string(given_outputs.size()));
      }
      input_owners.reserve(given_inputs.size());
      inputs.reserve(given_inputs.size());
      output_owners.reserve(given_outputs.size());
      outputs.reserve(given_outputs.size());
      for (std::size_t i = 0; i < given_inputs.size(); ++i) {
        input_owners.push_back(import_input(given_inputs[i], program.inputs()[i], *session.device_));
        inputs.push_back(as_input(input_owners.back()));
      }
      for (std::size_t i = 0; i < given_outputs.size(); ++i) {
        nb::object result = given_outputs[i];
        if (result.is_none()) result = nb::cast(session.outputs_->make_array(i));
        output_owners.push_back(import_output(result, program.outputs()[i], *session.device_));
        outputs.push_back(as_output(output_owners.back()));
        results.append(result);
      }
    }

    /// Room for the lists of some dozens of arguments, so that a call of a usual program takes nothing from the heap.
    alignas(std::max_align_t) std::array<std::byte, 4096> room;
    std::pmr::monotonic_buffer_resource memory{room.data(), room.size()};
    // Parentheses: in braces an array that wraps the pointer would be the first element.
    std::pmr::vector<ReadArray> input_owners = std::pmr::vector<ReadArray>(&memory);
    std::pmr::vector<WriteArray> output_owners = std::pmr::vector<WriteArray>(&memory);
    std::pmr::vector<InputArray> inputs = std::pmr::vector<InputArray>(&memory);
    std::pmr::vector<OutputArray> outputs = std::pmr::vector<OutputArray>(&memory);
    nb::list results;
  };

  void check_stream(hipStream_t stream) const { device_->check_stream(stream); }

  /// With the GIL, which is free while it runs.
  void wait_for(const Call& call) {
    Signals signals;
    const nb::gil_scoped_release unlocked;
    pool_.run(call.inputs, call.outputs, [&signals] { signals.check(); });
  }

  /// Without the GIL.
  void queue(const Call& call, std::uintptr_t stream) { pool_.enqueue(call.inputs, call.outputs, reinterpret_cast<hipStream_t>(stream)); }

 private:
  template <typename Action>
  std::size_t count_steps() const {
    std::size_t count = 0;
    for (const Step& step : program_->steps()) count += std::holds_alternative<Action>(step.action) ? 1 : 0;
    return count;
  }

  std::shared_ptr<const Device> device_;
  std::shared_ptr<const Program> program_;
  std::shared_ptr<OutputPool> outputs_;
  ContextPool pool_;
};

/// A run on arrays that were looked at once; it keeps them and the session.
class BoundRun {
 public:
  /// Without a stream a run ends when its outputs are there.
  BoundRun(std::shared_ptr<Session> session, const nb::list& inputs, const nb::list& outputs, std::optional<std::uintptr_t> stream)
      : session_(std::move(session)), call_(std::make_unique<const Session::Call>(*session_, inputs, outputs)), stream_(stream) {
    if (stream_) session_->check_stream(reinterpret_cast<hipStream_t>(*stream_));
  }

  void operator()() const {
    if (!stream_) return session_->wait_for(*call_);
    const nb::gil_scoped_release unlocked;
    session_->queue(*call_, *stream_);
  }

 private:
  std::shared_ptr<Session> session_;
  std::unique_ptr<const Session::Call> call_;
  std::optional<std::uintptr_t> stream_;
};

/// Sessions of one program for the sizes that were asked for; a static program has one.
class Sessions {
 public:
  Sessions(std::shared_ptr<const Device> device, std::shared_ptr<const DynamicProgram> program, std::size_t capacity)
      : device_(std::move(device)), program_(std::move(program)), cache_(capacity) {
    if (!program_->is_static()) constants_ = std::make_shared<const ConstantMemory>(*device_, program_->stored_constants());
  }

  /// The session for inputs of these dims.
  std::shared_ptr<Session> at(const std::vector<std::vector<std::int64_t>>& dims) {
    // Making a session may wait for another thread that makes one.
    const nb::gil_scoped_release unlocked;
    if (program_->is_static()) return for_sizes({});
    check_count(dims);
    const std::vector<std::span<const std::int64_t>> spans(dims.begin(), dims.end());
    return for_sizes(program_->sizes_of(spans));
  }

  /// What inputs of these dims make of the symbols, and the values that those are rounded up to.
  std::pair<Sizes, Sizes> sizes_of(const std::vector<std::vector<std::int64_t>>& dims) const {
    check_count(dims);
    const std::vector<std::span<const std::int64_t>> spans(dims.begin(), dims.end());
    Sizes sizes = program_->sizes_of(spans);
    Sizes rounded = program_->rounded(sizes);
    return {std::move(sizes), std::move(rounded)};
  }

  Sizes rounded(const Sizes& sizes) const {
    check_symbols(sizes);
    return program_->rounded(sizes);
  }

  std::vector<std::vector<std::int64_t>> output_dims(const Sizes& sizes) const {
    check_symbols(sizes);
    return program_->output_dims(sizes);
  }

  /// The session for these values of the symbols.
  std::shared_ptr<Session> at_sizes(const Sizes& sizes) {
    const nb::gil_scoped_release unlocked;
    check_symbols(sizes);
    return for_sizes(sizes);
  }

  std::size_t count() const { return cache_.count(); }

 private:
  void check_symbols(const Sizes& sizes) const {
    if (sizes.size() == program_->symbols().size()) return;
    throw InputError("expected " + std::to_string(program_->symbols().size()) + " sizes, got " + std::to_string(sizes.size()));
  }

  void check_count(const std::vector<std::vector<std::int64_t>>& dims) const {
    if (dims.size() == program_->inputs().size()) return;
    throw InputError("expected the dims of " + std::to_string(program_->inputs().size()) + " inputs, got " + std::to_string(dims.size()));
  }

  std::shared_ptr<Session> for_sizes(const Sizes& sizes) {
    return cache_.get(sizes, [&] {
      try {
        return std::make_shared<Session>(device_, program_->at(sizes), constants_);
      } catch (const PlanRefusedError& error) {
        if (program_->is_static() || program_->has_specializations()) throw;  // the model may be compiled again
        throw InputError("the device does not take " + program_->describe(sizes) + ": " + error.what());
      }
    });
  }

  std::shared_ptr<const Device> device_;
  std::shared_ptr<const DynamicProgram> program_;
  /// Of all specializations; null for a static program.
  std::shared_ptr<const ConstantMemory> constants_;
  SizeCache<Session> cache_;
};

}  // namespace hipdnn_rt::bindings
