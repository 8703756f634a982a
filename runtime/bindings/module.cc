// hipdnn_mlir._runtime: devices, programs and sessions for Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <optional>

#include "arrays.h"
#include "hipdnn_rt/context_pool.h"
#include "hipdnn_rt/disk_cache.h"
#include "hipdnn_rt/error.h"
#include "hipdnn_rt/json_field.h"
#include "hipdnn_rt/open_program.h"
#include "hipdnn_rt/plan_cache.h"
#include "hipdnn_rt/refusal_store.h"
#include "hipdnn_rt/size_cache.h"
#include "log_queue.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hipdnn_rt::bindings {
namespace {

/// (name, dtype, dims) of each argument; an open dim is the text of its expression.
nb::list describe(const OpenProgram& program, const std::vector<OpenArgument>& arguments) {
  nb::list rows;
  for (const OpenArgument& argument : arguments) {
    nb::list dims;
    for (const Expression& dim : argument.dims) {
      if (dim.entry) {
        dims.append(program.text_of(dim));
      } else {
        dims.append(dim.number);
      }
    }
    rows.append(nb::make_tuple(argument.name, std::string(info_of(argument.dtype).name), dims));
  }
  return rows;
}

/// Let a port's hipDNN library log to the queue, from a severity on. Before its first handle, with which it loads plugins.
void listen(const Library& library, hipdnnSeverity_t severity) {
  const auto add = [](void* queue, hipdnnSeverity_t level, const char* line) {
    static_cast<LogQueue*>(queue)->add(level, "hipdnn", line == nullptr ? "" : line);
  };
  try {
    library.listen(add, severity, &LogQueue::instance());
  } catch (const DeviceError& error) {
    LogQueue::instance().add(HIPDNN_SEV_WARN, "runtime", error.what());
  }
}

std::shared_ptr<const Device> open_device(const std::string& port, int threads, int ordinal, const std::string& directory, bool graphs, int tune,
                                          const std::string& engine, const std::vector<std::string>& knobs, bool tf32, const std::string& plan_folder, bool find_first, bool override_shapes,
                                          const std::vector<std::string>& policies, const std::vector<std::string>& plugin_dirs,
                                          const std::string& plugin_mode, std::optional<int> log_from) {
  const nb::gil_scoped_release unlocked;
  Device::Options options{.ordinal = ordinal, .threads = threads, .uses_graphs = graphs, .timed_plans = tune, .engine = engine, .knobs = knobs,
                          .finds_first = find_first, .overrides_shapes = override_shapes, .policies = policies, .plugins = {plugin_dirs, plugin_mode_of(plugin_mode)},
                          .allows_tf32 = tf32, .plan_folder = plan_folder};
  options.log = [](hipdnnSeverity_t severity, const std::string& line) { LogQueue::instance().add(severity, "runtime", line); };
  auto library = Library::open(port, directory);
  if (log_from) listen(*library, static_cast<hipdnnSeverity_t>(*log_from));
  return std::make_shared<const Device>(std::move(library), std::move(options));
}

int count_devices(const std::string& port) {
  const nb::gil_scoped_release unlocked;
  const auto library = Library::open(port);
  int count = 0;
  check(library->hip(), library->hip().get_device_count(&count), "hipGetDeviceCount");
  return count;
}

nb::list take_log() {
  nb::list rows;
  for (const LogLine& line : LogQueue::instance().take()) rows.append(nb::make_tuple(static_cast<int>(line.severity), line.source, line.text));
  return rows;
}

nb::list engine_rows(const Device& device) {
  nb::list rows;
  for (const EngineInfo& engine : device.engines()) rows.append(nb::make_tuple(engine.name, engine.plugin, engine.version, engine.id));
  return rows;
}

nb::object memory_of(const Device& device) {
  const auto info = device.memory_info();
  return info ? nb::object(nb::make_tuple(info->free_bytes, info->total_bytes)) : nb::none();
}

void synchronize(const Device& device, std::uintptr_t stream) {
  const nb::gil_scoped_release unlocked;
  device.activate();
  const HipApi& hip = device.library().hip();
  check(hip, hip.stream_synchronize(reinterpret_cast<hipStream_t>(stream)), "hipStreamSynchronize");
}

nb::dict plan_row(const Plan& plan) {
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

nb::list refusal_rows(const std::vector<RefusedPlan>& refusals) {
  nb::list rows;
  for (const RefusedPlan& plan : refusals) rows.append(nb::make_tuple(plan.graph, plan.summary, plan.nodes, plan.reason));
  return rows;
}

const char* kind_of(const Step& step) {
  if (std::holds_alternative<ExecuteStep>(step.action)) return "execute";
  return std::holds_alternative<LaunchStep>(step.action) ? "launch" : "copy";
}

nb::dict build_plan(const Device& device, const std::string& text) {
  const nlohmann::json json = parse_json(text, "executable");
  const Executable executable = parse_executable(Field(json, "executable"));
  const auto handle = std::make_shared<const Handle>(device.create_handle(nullptr));
  try {
    return plan_row(*Plan::build(device, handle, executable, {}));
  } catch (const NoPlanError& error) {
    throw PlanRefusedError({{executable.name, executable.summary, {}, error.what()}});
  }
}

std::shared_ptr<const OpenProgram> load_program(const std::string& path) {
  const nb::gil_scoped_release unlocked;
  return OpenProgram::load(path);
}

/// Arrays of Python kept alive by a program; released under the GIL, whichever thread drops the program.
struct ArrayKeeper {
  std::vector<ReadArray> arrays;

  ArrayKeeper() = default;
  ArrayKeeper(const ArrayKeeper&) = delete;
  ArrayKeeper& operator=(const ArrayKeeper&) = delete;
  ~ArrayKeeper() {
    const nb::gil_scoped_acquire locked;
    arrays.clear();
  }
};

std::shared_ptr<const OpenProgram> parse_program(const std::string& text, const nb::dict& arrays) {
  const auto keeper = std::make_shared<ArrayKeeper>();
  Program::Tensors tensors;
  for (const auto& [name, object] : arrays) {
    ReadArray array;
    const auto key = nb::cast<std::string>(name);
    if (!nb::try_cast(object, array) || array.ndim() != 1 || array.itemsize() != 1 || (array.size() > 1 && array.stride(0) != 1)) {
      throw InputError("tensor '" + key + "': expected a dense array of bytes of rank 1");
    }
    tensors[key] = {static_cast<const std::byte*>(array.data()), array.size()};
    keeper->arrays.push_back(std::move(array));
  }
  return OpenProgram::parse(text, tensors, keeper);
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
    {
      const nb::gil_scoped_release unlocked;
      pool_.run(call.inputs, call.outputs);
    }
    return call.results;
  }

  void enqueue(const nb::list& inputs, const nb::list& outputs, std::uintptr_t stream) {
    const Call call(*this, inputs, outputs);
    const nb::gil_scoped_release unlocked;
    queue(call, stream);
  }

  std::vector<std::vector<double>> profile(const nb::list& inputs, int repeat) {
    nb::list fresh;
    for (std::size_t i = 0; i < program_->outputs().size(); ++i) fresh.append(nb::none());
    const Call call(*this, inputs, fresh);
    const nb::gil_scoped_release unlocked;
    std::vector<std::vector<double>> runs;
    for (int i = 0; i < repeat; ++i) runs.push_back(pool_.run_timed(call.inputs, call.outputs));
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

  nb::list steps() const {
    nb::list rows;
    for (std::size_t s = 0; s < program_->steps().size(); ++s) {
      const Step& step = program_->steps()[s];
      const Plan* plan = pool_.program().plan(s);
      nb::dict row = plan ? plan_row(*plan) : nb::dict();
      row["name"] = step.name;
      row["kind"] = kind_of(step);
      if (const auto* execute = std::get_if<ExecuteStep>(&step.action)) {
        row["executable"] = program_->executables()[execute->executable].name;
        row["overrides"] = !pool_.program().overrides(s).empty();
        row["summary"] = program_->executables()[execute->executable].summary;
      } else if (const auto* launch = std::get_if<LaunchStep>(&step.action)) {
        const Kernel& kernel = program_->kernels()[launch->kernel];
        row["kernel"] = kernel.name;
        row["function"] = kernel.function;
        row["summary"] = kernel.summary.empty() ? kernel.function : kernel.summary;
      }
      rows.append(row);
    }
    return rows;
  }

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
  BoundRun(std::shared_ptr<Session> session, const nb::list& inputs, const nb::list& outputs, std::uintptr_t stream)
      : session_(std::move(session)), call_(std::make_unique<const Session::Call>(*session_, inputs, outputs)), stream_(stream) {}

  /// Queue it.
  void operator()() const {
    const nb::gil_scoped_release unlocked;
    session_->queue(*call_, stream_);
  }

 private:
  std::shared_ptr<Session> session_;
  std::unique_ptr<const Session::Call> call_;
  std::uintptr_t stream_;
};

/// Sessions of one program for the sizes that were asked for; a static program has one.
class Sessions {
 public:
  Sessions(std::shared_ptr<const Device> device, std::shared_ptr<const OpenProgram> program, std::size_t capacity)
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
        if (program_->is_static() || program_->is_stored()) throw;  // the model may be compiled again
        throw InputError("the device does not take " + program_->describe(sizes) + ": " + error.what());
      }
    });
  }

  std::shared_ptr<const Device> device_;
  std::shared_ptr<const OpenProgram> program_;
  /// Of all instances; null for a static program.
  std::shared_ptr<const ConstantMemory> constants_;
  SizeCache<Session> cache_;
};

/// Raise the class of hipdnn_mlir.errors that stands for a C++ exception. `payload` is that module.
void translate(const std::exception_ptr& exception, void* payload) {
  const nb::handle errors(static_cast<PyObject*>(payload));
  const auto raise = [&](const char* name, const Error& error) { PyErr_SetString(errors.attr(name).ptr(), error.what()); };
  try {
    std::rethrow_exception(exception);
  } catch (const WrongTargetError& error) {
    raise("WrongTargetError", error);
  } catch (const ProgramError& error) {
    raise("ProgramError", error);
  } catch (const PlanRefusedError& error) {
    const nb::object kind = errors.attr("PlanRefusedError");
    PyErr_SetObject(kind.ptr(), kind(refusal_rows(error.refusals())).ptr());
  } catch (const DeviceError& error) {
    raise("DeviceError", error);
  } catch (const InputError& error) {
    raise("ModelError", error);
  }
}

}  // namespace

NB_MODULE(_runtime, m) {
  m.doc() = "Runs hipDNN programs on a port's device.";
  // The module object lives as long as the interpreter.
  nb::register_exception_translator(translate, nb::module_::import_("hipdnn_mlir.errors").release().ptr());
  m.attr("PROGRAM_FORMAT") = kProgramFormat;

  nb::class_<Device>(m, "Device", "One device of a port, with the plans built on it.")
      .def_prop_ro("port", [](const Device& device) { return std::string(device.port().name); })
      .def_prop_ro("target", [](const Device& device) { return device.target(); })
      .def("runs", [](const Device& device, const std::string& target) { return device.runs(target); }, "target"_a, "Whether it runs programs for a target.")
      .def_prop_ro("ordinal", [](const Device& device) { return device.options().ordinal; }, "Number of the device on its port.")
      .def_prop_ro("threads", [](const Device& device) { return device.options().threads; })
      .def_prop_ro("version", [](const Device& device) { return device.library().version(); })
      .def_prop_ro("runtime_version", [](const Device& device) { return device.library().runtime_version(); }, "Of HIP, or of the driver behind it.")
      .def_prop_ro("takes_constants", &Device::takes_constants)
      .def_prop_ro("name", &Device::name, "The device's model; empty where the port does not tell.")
      .def_prop_ro("architecture", &Device::architecture)
      .def_prop_ro("memory", &memory_of, "Free bytes and all bytes of the device; None where the port does not tell.")
      .def_prop_ro("engines", &Device::engine_names, "Engine names by id.")
      .def_prop_ro("engine_rows", &engine_rows, "(name, plugin, version, id) of each engine.")
      .def_prop_ro("policies", &Device::policies, "Names of the library's heuristic policies.")
      .def_prop_ro("plugins", &Device::plugins, "Files of the library's plugins.")
      .def_prop_ro("plan_count", [](const Device& device) { return device.plans().size(); })
      .def("synchronize", &synchronize, "stream"_a, "Wait for what is queued on a stream, given by its address.")
      .def("build_plan", &build_plan, "executable"_a,
           "Build the plan of one executable (JSON as in a program), to learn whether and by which engine it is taken: PlanRefusedError where by none.");
  nb::class_<RefusalStore>(m, "RefusalStore", "Graphs that a device's library has refused, kept in a folder.")
      .def(nb::init<const Device&, const std::string&>(), "device"_a, "folder"_a)
      .def("all", [](const RefusalStore& store) { return refusal_rows(store.all()); }, "(graph, summary, nodes, reason) of each.")
      .def("add", [](const RefusalStore& store, const std::string& graph, const std::string& summary, const std::string& nodes,
                     const std::string& reason) { store.add({graph, summary, nodes, reason}); },
           "graph"_a, "summary"_a, "nodes"_a, "reason"_a);
  m.def("open_device", &open_device, "port"_a, "threads"_a = 0, "ordinal"_a = 0, "directory"_a = "", "graphs"_a = false, "tune"_a = 0,
        "engine"_a = "", "knobs"_a = std::vector<std::string>(), "tf32"_a = false, "plan_folder"_a = "", "find_first"_a = false, "override_shapes"_a = false,
        "policies"_a = std::vector<std::string>(), "plugin_dirs"_a = std::vector<std::string>(), "plugin_mode"_a = "additive", "log_from"_a = nb::none());
  m.def("device_array", [](const Device& device, std::uintptr_t address, const std::vector<std::size_t>& dims,
                           const std::optional<std::vector<std::int64_t>>& strides, const std::string& dtype,
                           const nb::object& owner) { return wrap_device_memory(device, address, dims, strides, dtype, owner); },
        "device"_a, "address"_a, "dims"_a, "strides"_a.none(), "dtype"_a, "owner"_a,
        "A DLPack capsule of memory of the device, which keeps the owner alive; strides are in elements.");
  m.def("count_devices", &count_devices, "port"_a, "Devices of a port.");
  m.def("take_log", &take_log, "(severity, source, line) of what was logged since the last call; severities are hipDNN's.");
  m.def("default_cache_directory", &default_cache_directory, "The user's folder for what is kept between processes; empty where there is none.");

  m.def("port_for_target", [](const std::string& target) { return std::string(Library::port_for_target(target).name); }, "target"_a,
        "Name of the port that runs programs compiled for a target.");

  nb::class_<OpenProgram>(m, "Program", "A parsed and checked program.")
      .def_static("load", &load_program, "path"_a)
      .def_static("parse", &parse_program, "text"_a, "tensors"_a)
      .def_prop_ro("target", &OpenProgram::target)
      .def_prop_ro("allows_tf32", &OpenProgram::allows_tf32)
      .def_prop_ro("text", &OpenProgram::text)
      .def_prop_ro("symbols", &OpenProgram::symbols, "Names of the open sizes.")
      .def_prop_ro("buckets", &OpenProgram::buckets, "Per symbol the sizes that it is rounded up to; empty where none has any.")
      .def_prop_ro("exact", &OpenProgram::exact, "Per symbol why it is not rounded up to its buckets; empty where it is.")
      .def_prop_ro("is_stored", &OpenProgram::is_stored, "Whether the file has a program for each combination of buckets.")
      .def_prop_ro("inputs", [](const OpenProgram& program) { return describe(program, program.inputs()); },
                   "(name, dtype, dims) of each input; an open dim is a text.")
      .def_prop_ro("outputs", [](const OpenProgram& program) { return describe(program, program.outputs()); },
                   "(name, dtype, dims) of each output; an open dim is a text.");

  nb::class_<Sessions>(m, "Sessions", "A program on a device, loaded for the sizes that are asked for.")
      .def(nb::init<std::shared_ptr<const Device>, std::shared_ptr<const OpenProgram>, std::size_t>(), "device"_a, "program"_a, "capacity"_a,
           nb::call_guard<nb::gil_scoped_release>())
      .def("at", &Sessions::at, "dims"_a, "The session for inputs of these dims.")
      .def("sizes_of", &Sessions::sizes_of, "dims"_a, "The symbols' values for inputs of these dims, and what they are rounded up to.")
      .def("rounded", &Sessions::rounded, "sizes"_a, "What these values of the symbols are rounded up to.")
      .def("output_dims", &Sessions::output_dims, "sizes"_a, "The dims of each output for these values of the symbols.")
      .def("at_sizes", &Sessions::at_sizes, "sizes"_a, "The session for these values of the symbols.")
      .def_prop_ro("count", &Sessions::count);

  nb::class_<BoundRun>(m, "BoundRun", "Queues a run on the arrays that it keeps.").def("__call__", &BoundRun::operator());
  nb::class_<Session>(m, "Session", "A program loaded on a device, for one combination of sizes.")
      .def_prop_ro("outputs", &Session::output_dims, "Dims of each output.")
      .def("run", &Session::run, "inputs"_a, "outputs"_a)
      .def("enqueue", &Session::enqueue, "inputs"_a, "outputs"_a, "stream"_a)
      .def("bind", [](std::shared_ptr<Session> self, const nb::list& inputs, const nb::list& outputs, std::uintptr_t stream) {
             return std::make_shared<BoundRun>(std::move(self), inputs, outputs, stream);
           }, "inputs"_a, "outputs"_a, "stream"_a)
      .def("profile", &Session::profile, "inputs"_a, "repeat"_a)
      .def("stats", &Session::stats)
      .def("steps", &Session::steps);
}

}  // namespace hipdnn_rt::bindings
