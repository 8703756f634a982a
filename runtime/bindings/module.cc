// hipdnn_mlir_runtime._runtime: devices, programs and sessions for Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>

#include "arrays.h"
#include "device/error.h"
#include "execute/arena.h"
#include "log_queue.h"
#include "options_table.h"
#include "plan/descriptor.h"
#include "plan/plan_cache.h"
#include "plan/proposals.h"
#include "plan/refusal_store.h"
#include "program/dynamic_program.h"
#include "sessions.h"
#include "storage/disk_cache.h"
#include "storage/sealed.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hipdnn_rt::bindings {
namespace {

/// (name, dtype, dims) of each argument; a dynamic dim is the text of its expression.
nb::list describe(const DynamicProgram& program, const std::vector<DynamicArgument>& arguments) {
  nb::list rows;
  for (const DynamicArgument& argument : arguments) {
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

std::tuple<std::vector<std::uint64_t>, std::uint64_t, std::uint64_t> lay_out(
    const std::vector<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>>& rows, std::size_t alignment) {
  std::vector<ArenaRequest> requests;
  for (const auto& [bytes, first, last] : rows) requests.push_back({bytes, first, last});
  ArenaLayout layout = plan_arena(requests, alignment);
  return {std::move(layout.offsets), layout.arena_bytes, layout.largest_live_bytes};
}

/// Let a port's hipDNN library log to the queue, from a severity on. Before its first handle, with which it loads plugins.
void listen(const Library& library, hipdnnSeverity_t severity) {
  const auto add = [](void* queue, hipdnnSeverity_t level, const char* line) {
    std::string text = line == nullptr ? "" : line;
    text.erase(text.find_last_not_of("\r\n") + 1);  // AMD's library ends its lines
    static_cast<LogQueue*>(queue)->add(level, "hipdnn", text);
  };
  try {
    library.listen(add, severity, &LogQueue::instance());
  } catch (const DeviceError& error) {
    LogQueue::instance().add(HIPDNN_SEV_WARN, "runtime", error.what());
  }
}

/// `given` is what Python has checked; what it leaves out is as in the table.
std::shared_ptr<const Device> open_device(const nb::dict& given, const std::string& directory, std::optional<int> log_from) {
  DeviceOptions options;
  visit_device_options([&](const OptionRow& row, auto& value) {
    const nb::str name(row.name.data(), row.name.size());
    if (given.contains(name)) value = nb::cast<std::decay_t<decltype(value)>>(given[name]);
  }, options);
  const nb::gil_scoped_release unlocked;
  auto library = Library::open(options.port, directory);
  if (log_from) listen(*library, static_cast<hipdnnSeverity_t>(*log_from));
  const auto log = [](hipdnnSeverity_t severity, const std::string& line) { LogQueue::instance().add(severity, "runtime", line); };
  return std::make_shared<const Device>(std::move(library), std::move(options), DeviceEnvironment{.log = log});
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

nb::list refusal_rows(const std::vector<RefusedPlan>& refusals) {
  nb::list rows;
  for (const RefusedPlan& plan : refusals) rows.append(nb::make_tuple(plan.graph, plan.summary, plan.nodes, plan.reason));
  return rows;
}

nb::dict build_plan(const Device& device, const std::string& text) {
  const Executable executable = parse_executable(text);
  const auto handle = std::make_shared<const Handle>(device.create_handle(nullptr));
  try {
    return plan_row(*Plan::build(device, handle, executable, {}));
  } catch (const NoPlanError& error) {
    throw PlanRefusedError({{executable.name, executable.summary, {}, error.what()}});
  }
}

/// Names of the engines that take a graph, best first; where none does, the library's words.
nb::tuple engines_for(const Device& device, const std::string& text) {
  const Executable executable = parse_executable(text);
  const Handle handle = device.create_handle(nullptr);
  const LogQueue::Mute mute;
  nb::list names;
  std::string reason;
  try {
    const auto graph = build_descriptors(device.shared_library(), handle.get(), executable.descriptors, executable.name);
    for (const Proposal& proposal : propose(device, graph.back(), executable.name, reason)) names.append(proposal.engine_name);
    if (names.size() == 0 && reason.empty()) reason = take_last_error(device.library().hipdnn());
  } catch (const LibraryError& error) {
    if (!error.is_refusal()) throw;
    reason = error.what();
  }
  return nb::make_tuple(names, names.size() == 0 ? reason : "");
}

/// The port's reason against the image of a kernel; empty where it takes it.
std::string refuses_kernel(const Device& device, const std::string& image) {
  device.activate();
  const HipApi& hip = device.library().hip();
  hipModule_t module = nullptr;
  const hipError_t status = hip.module_load_data(&module, image.c_str());
  if (status != hipSuccess) return describe_kernel_failure(hip, status);
  check(hip, hip.module_unload(module), "hipModuleUnload");
  return {};
}

nb::list cache_entries(const DiskCache& cache) {
  nb::list rows;
  for (const CacheEntry& entry : cache.entries()) rows.append(nb::make_tuple(entry.key, entry.suffix, entry.bytes, entry.used_s));
  return rows;
}

/// The line of JSON of a file with a checksum; None where it cannot be read or is damaged.
nb::object sealed_line(const std::string& path) {
  const auto bytes = read_file(path);
  const auto found = bytes ? unseal(*bytes) : std::nullopt;
  return found ? nb::object(nb::bytes(found->line.data(), found->line.size())) : nb::none();
}

std::shared_ptr<const DynamicProgram> load_program(const std::string& path) {
  const nb::gil_scoped_release unlocked;
  return DynamicProgram::load(path);
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

std::shared_ptr<const DynamicProgram> parse_program(const std::string& text, const nb::dict& arrays) {
  const auto keeper = std::make_shared<ArrayKeeper>();
  Tensors tensors;
  for (const auto& [name, object] : arrays) {
    ReadArray array;
    const auto key = nb::cast<std::string>(name);
    if (!nb::try_cast(object, array) || array.ndim() != 1 || array.itemsize() != 1 || (array.size() > 1 && array.stride(0) != 1)) {
      throw InputError("tensor '" + key + "': expected a dense array of bytes of rank 1");
    }
    tensors[key] = {static_cast<const std::byte*>(array.data()), array.size()};
    keeper->arrays.push_back(std::move(array));
  }
  return DynamicProgram::parse(text, tensors, keeper);
}

/// Raise the class of hipdnn_mlir_runtime.errors that stands for a C++ exception. `payload` is that module.
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
  // What other packages' caches hold at the end of a process (torch.compile's hold sessions) is given back by the process.
  nb::set_leak_warnings(false);
  m.doc() = "Runs hipDNN programs on a port's device.";
  // The module object lives as long as the interpreter.
  nb::register_exception_translator(translate, nb::module_::import_("hipdnn_mlir_runtime.errors").release().ptr());
  m.attr("PROGRAM_FORMAT") = kProgramFormat;

  nb::class_<Device>(m, "Device", "One device of a port, with the plans built on it.")
      .def_prop_ro("port", [](const Device& device) { return std::string(device.port().name); })
      .def_prop_ro("target", [](const Device& device) { return device.target(); })
      .def("runs", [](const Device& device, const std::string& target) { return device.runs(target); }, "target"_a, "Whether it runs programs for a target.")
      .def_prop_ro("ordinal", [](const Device& device) { return device.ordinal(); }, "Number of the device on its port.")
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
           "Build the plan of one executable (JSON as in a program), to learn whether and by which engine it is taken: PlanRefusedError where by none.")
      .def("engines_for", &engines_for, "executable"_a,
           "(names, reason): the engines that take a graph (JSON as in a program), best first, without a plan; the library's words where none does.")
      .def("refuses_kernel", &refuses_kernel, "image"_a, "The port's reason against a kernel's image; empty where it takes it.");
  nb::class_<RefusalStore>(m, "RefusalStore", "Graphs that a device's library has refused, kept in a folder.")
      .def(nb::init<const Device&, const std::string&>(), "device"_a, "folder"_a)
      .def("all", [](const RefusalStore& store) { return refusal_rows(store.all()); }, "(graph, summary, nodes, reason) of each.")
      .def("add", [](const RefusalStore& store, const std::string& graph, const std::string& summary, const std::string& nodes,
                     const std::string& reason) { store.add({graph, summary, nodes, reason}); },
           "graph"_a, "summary"_a, "nodes"_a, "reason"_a);
  m.def("open_device", &open_device, "options"_a, "directory"_a = "", "log_from"_a = nb::none());
  m.def("device_array", [](const Device& device, std::uintptr_t address, const std::vector<std::size_t>& dims,
                           const std::optional<std::vector<std::int64_t>>& strides, const std::string& dtype,
                           const nb::object& owner) { return wrap_device_memory(device, address, dims, strides, dtype, owner); },
        "device"_a, "address"_a, "dims"_a, "strides"_a.none(), "dtype"_a, "owner"_a,
        "A DLPack capsule of memory of the device, which keeps the owner alive; strides are in elements.");
  m.def("count_devices", &count_devices, "port"_a, "Devices of a port.");
  m.def("take_log", &take_log, "(severity, source, line) of what was logged since the last call; severities are hipDNN's.");
  m.def("default_cache_directory", &default_cache_directory, "The user's folder for what is kept between processes; empty where there is none.");

  m.attr("PLAN_CACHE_BYTES") = DeviceEnvironment{}.plan_cache_bytes;
  m.def("sealed_line", &sealed_line, "path"_a, "What is kept of a plan or a refusal, as JSON; None for a damaged file.");
  nb::class_<DiskCache>(m, "DiskCache", "A folder of what is kept between processes; nothing is stored through this one.")
      .def("__init__", [](DiskCache* self, const std::string& folder) { new (self) DiskCache(folder, 0); }, "folder"_a)
      .def("entries", &cache_entries, "(key, suffix, bytes, time of last use) of each, latest first: ModelError where the folder cannot be used.")
      .def("remove", &DiskCache::remove, "key"_a, "suffix"_a, "Delete an entry; whether there was one.");

  m.def("plan_arena", &lay_out, "requests"_a, "alignment"_a,
        "Offsets of (bytes, first step, last step), bytes of the whole, and the most bytes that are alive at one step.");

  m.def("port_for_target", [](const std::string& target) { return std::string(Library::port_for_target(target).name); }, "target"_a,
        "Name of the port that runs programs compiled for a target.");

  nb::class_<DynamicProgram>(m, "Program", "A parsed and checked program.")
      .def_static("load", &load_program, "path"_a)
      .def_static("parse", &parse_program, "text"_a, "tensors"_a)
      .def_prop_ro("target", &DynamicProgram::target)
      .def_prop_ro("allows_tf32", &DynamicProgram::allows_tf32)
      .def_prop_ro("text", &DynamicProgram::text)
      .def_prop_ro("symbols", &DynamicProgram::symbols, "Names of the dynamic dimensions.")
      .def_prop_ro("buckets", &DynamicProgram::buckets, "Per symbol the sizes that it is rounded up to; empty where none has any.")
      .def_prop_ro("exact", &DynamicProgram::exact, "Per symbol why it is not rounded up to its buckets; empty where it is.")
      .def_prop_ro("has_specializations", &DynamicProgram::has_specializations, "Whether the file has a program for each combination of buckets.")
      .def_prop_ro("code_kernels", &DynamicProgram::code_kernels, "Names of the kernels that hold code for a GPU.")
      .def_prop_ro("inputs", [](const DynamicProgram& program) { return describe(program, program.inputs()); },
                   "(name, dtype, dims) of each input; a dynamic dim is a text.")
      .def_prop_ro("outputs", [](const DynamicProgram& program) { return describe(program, program.outputs()); },
                   "(name, dtype, dims) of each output; a dynamic dim is a text.");

  nb::class_<Sessions>(m, "Sessions", "A program on a device, loaded for the sizes that are asked for.")
      .def(nb::init<std::shared_ptr<const Device>, std::shared_ptr<const DynamicProgram>, std::size_t>(), "device"_a, "program"_a, "capacity"_a,
           nb::call_guard<nb::gil_scoped_release>())
      .def("at", &Sessions::at, "dims"_a, "The session for inputs of these dims.")
      .def("sizes_of", &Sessions::sizes_of, "dims"_a, "The symbols' values for inputs of these dims, and what they are rounded up to.")
      .def("rounded", &Sessions::rounded, "sizes"_a, "What these values of the symbols are rounded up to.")
      .def("output_dims", &Sessions::output_dims, "sizes"_a, "The dims of each output for these values of the symbols.")
      .def("at_sizes", &Sessions::at_sizes, "sizes"_a, "The session for these values of the symbols.")
      .def_prop_ro("count", &Sessions::count);

  nb::class_<BoundRun>(m, "BoundRun", "A run on the arrays that it keeps: queues it on the stream that it was given, or waits for its end.")
      .def("__call__", &BoundRun::operator());
  nb::class_<Session>(m, "Session", "A program loaded on a device, for one combination of sizes.")
      .def_prop_ro("outputs", &Session::output_dims, "Dims of each output.")
      .def("run", &Session::run, "inputs"_a, "outputs"_a)
      .def("enqueue", &Session::enqueue, "inputs"_a, "outputs"_a, "stream"_a)
      .def("bind", [](std::shared_ptr<Session> self, const nb::list& inputs, const nb::list& outputs, std::optional<std::uintptr_t> stream) {
             return std::make_shared<BoundRun>(std::move(self), inputs, outputs, stream);
           }, "inputs"_a, "outputs"_a, "stream"_a.none())
      .def("profile", &Session::profile, "inputs"_a, "repeat"_a,
           "Per run when its first step began, in seconds of the monotonic clock, and microseconds of each step.")
      .def("stats", &Session::stats)
      .def("arena", &Session::arena, "(offset, bytes, first step, last step) of each buffer in the arena, then of each step's workspace.")
      .def("steps", &Session::steps)
      .def("work", &Session::work, "What each step computes: its descriptors, its kernel's description, or the bytes it copies.");
}

}  // namespace hipdnn_rt::bindings
