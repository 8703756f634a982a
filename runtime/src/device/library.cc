#include "device/library.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "device/error.h"

namespace hipdnn_rt {
namespace {

/// File names of one library, tried in order.
using Candidates = std::array<const char*, 4>;

struct PortLibraries {
  Port port;
  /// Shipped in the package, so looked up beside the module and nowhere else.
  bool is_packaged;
  Candidates hip;
  Candidates hipdnn;
  /// What to do about libraries that do not open, and about those that are too old.
  const char* remedy;
  const char* update;
};

constexpr std::array<PortLibraries, 3> kPorts{{
    {{"host", "", true, 64, false}, true, {"libhipdnn_host.so"}, {"libhipdnn_host.so"},
     "reinstall the package; what is built with -DHIPDNN_MLIR_HOST_PORT=OFF has no port 'host'", "reinstall the package"},
    {{"hip", "gfx", false, 256, true},
     false,
     {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so"},
     {"libhipdnn_backend.so", "libhipdnn_backend.so.1", "libhipdnn_backend.so.0", "/opt/rocm/lib/libhipdnn_backend.so"},
     "install ROCm Core SDK 10.0 or newer with hipDNN and put its lib folder on LD_LIBRARY_PATH, or use the port 'host'",
     // The first release that was seen to have all: tensors came to hipDNN's sources on 2026-02-25 (ROCm/rocm-libraries pull request 4876),
     // operations in the weeks after.
     "install ROCm Core SDK 10.0 or newer with its hipDNN; hipDNN of ROCm 7.2 and before takes no graphs of descriptors"},
    {{"cuda", "sm_", false, 256, false}, true, {"libhipdnn_cuda.so"}, {"libhipdnn_cuda.so"}, "reinstall the package", "reinstall the package"},
}};

/// One opened library, the name it was found under, and what to do where it is too old.
struct Opened {
  void* handle;
  std::string name;
  const char* update;
};

std::filesystem::path module_directory() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&module_directory), &info) == 0 || info.dli_fname == nullptr) return {};
  return std::filesystem::absolute(info.dli_fname).parent_path();
}

std::vector<std::string> paths_of(const PortLibraries& port, const Candidates& names, const std::string& directory) {
  std::vector<std::string> paths;
  for (const char* name : names) {
    if (name == nullptr) continue;
    if (!directory.empty()) {
      paths.push_back((std::filesystem::path(directory) / name).string());
    } else if (port.is_packaged) {
      paths.push_back((module_directory() / "lib" / name).string());
      paths.push_back((module_directory() / name).string());
    }
    if (!port.is_packaged) paths.emplace_back(name);
  }
  return paths;
}

Opened open_first(const PortLibraries& port, const Candidates& names, const std::string& directory) {
  std::string reasons;
  for (const std::string& path : paths_of(port, names, directory)) {
    // RTLD_LOCAL: a library's own LLVM must not meet another one in the process. RTLD_NODELETE: its thread pools outlive every user.
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return {handle, path, port.update};
    const char* reason = dlerror();
    reasons += std::string(reasons.empty() ? "" : "; ") + (reason ? reason : path.c_str());
  }
  throw DeviceError("port '" + std::string(port.port.name) + "': cannot open " + names.front() + " (" + reasons + "); " + port.remedy);
}

template <typename Function>
void load_optional(const Opened& library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library.handle, symbol));
}

/// Where a library lies in memory that has a symbol; null where none has it.
const void* home_of(const void* symbol) {
  Dl_info info{};
  return symbol != nullptr && dladdr(symbol, &info) != 0 ? info.dli_fbase : nullptr;
}

/// A function that the project's own libraries have beside the ABI: none of the same name in a library below it, which `dlsym` finds as well.
template <typename Function>
void load_own(const Opened& library, const char* of_library, const char* symbol, Function& function) {
  const void* found = dlsym(library.handle, symbol);
  if (home_of(found) == home_of(dlsym(library.handle, of_library))) load_optional(library, symbol, function);
}

/// A version as hipRuntimeGetVersion tells it: of HIP in eight digits or more, of CUDA in five.
std::string runtime_version_text(int version) {
  constexpr int hip_major = 10'000'000, hip_minor = 100'000, cuda_major = 1000, cuda_minor = 10;
  if (version < hip_major) return std::to_string(version / cuda_major) + "." + std::to_string(version % cuda_major / cuda_minor);
  return std::to_string(version / hip_major) + "." + std::to_string(version % hip_major / hip_minor) + "." + std::to_string(version % hip_minor);
}

/// " (hipDNN 1.2.3)" or " (HIP 6.0.1)" of a library that tells, the former by either of its functions; else nothing.
std::string version_of(const Opened& library) {
  decltype(&::hipdnnVersionString_ext) version = nullptr;
  load_optional(library, "hipdnnVersionString_ext", version);
  if (const char* text = version != nullptr ? version() : nullptr) return " (hipDNN " + std::string(text) + ")";
  decltype(&::hipdnnGetVersion_ext) earlier_version = nullptr;
  load_optional(library, "hipdnnGetVersion_ext", earlier_version);
  const char* told = nullptr;
  if (earlier_version != nullptr && earlier_version(&told) == HIPDNN_STATUS_SUCCESS && told != nullptr) return " (hipDNN " + std::string(told) + ")";
  decltype(&::hipRuntimeGetVersion) runtime_version = nullptr;
  load_optional(library, "hipRuntimeGetVersion", runtime_version);
  int number = 0;
  if (runtime_version == nullptr || runtime_version(&number) != hipSuccess) return "";
  return " (HIP " + runtime_version_text(number) + ")";
}

template <typename Function>
void load(const Opened& library, const char* symbol, Function& function) {
  load_optional(library, symbol, function);
  if (function == nullptr) {
    throw DeviceError(library.name + version_of(library) + ": the symbol " + symbol +
                      " is missing: the library is too old for this version of hipdnn_mlir; " + library.update);
  }
}

/// Of each kind that every program uses.
constexpr std::array<std::pair<hipdnnBackendDescriptorType_t, const char*>, 4> kNeededDescriptors{{
    {HIPDNN_BACKEND_TENSOR_DESCRIPTOR, "tensors"},
    {HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "convolutions"},
    {HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "matmuls"},
    {HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operations"},
}};

/// hipDNN at first took graphs as bytes alone, with the same symbols.
void check_descriptors(const Opened& library, const HipdnnApi& api) {
  std::string missing;
  for (const auto& [type, name] : kNeededDescriptors) {
    hipdnnBackendDescriptor_t made = nullptr;
    if (api.create_descriptor(type, &made) == HIPDNN_STATUS_SUCCESS) {
      api.destroy_descriptor(made);
    } else {
      missing += std::string(missing.empty() ? "" : ", ") + name;
    }
  }
  if (missing.empty()) return;
  take_last_error(api);  // it must not appear in a later error
  throw DeviceError(library.name + version_of(library) + ": it has no descriptors of " + missing +
                    ": the library is too old for this version of hipdnn_mlir; " + library.update);
}

HipApi load_hip(const Opened& library) {
  HipApi api;
  load(library, "hipGetDeviceCount", api.get_device_count);
  load(library, "hipSetDevice", api.set_device);
  load(library, "hipGetErrorString", api.get_error_string);
  load(library, "hipMalloc", api.malloc);
  load(library, "hipFree", api.free);
  load(library, "hipMemcpyAsync", api.memcpy_async);
  load(library, "hipMemcpy2DAsync", api.memcpy_2d_async);
  load(library, "hipMemsetAsync", api.memset_async);
  load(library, "hipStreamCreateWithFlags", api.stream_create);
  load(library, "hipStreamDestroy", api.stream_destroy);
  load(library, "hipStreamSynchronize", api.stream_synchronize);
  load(library, "hipStreamWaitEvent", api.stream_wait_event);
  load(library, "hipEventCreateWithFlags", api.event_create);
  load(library, "hipEventRecord", api.event_record);
  load(library, "hipEventSynchronize", api.event_synchronize);
  load(library, "hipEventElapsedTime", api.event_elapsed_time);
  load(library, "hipEventDestroy", api.event_destroy);
  load(library, "hipModuleLoadData", api.module_load_data);
  load(library, "hipModuleUnload", api.module_unload);
  load(library, "hipModuleGetFunction", api.module_get_function);
  load(library, "hipModuleLaunchKernel", api.module_launch_kernel);
  load_optional(library, "hipHostMalloc", api.host_malloc);
  load_optional(library, "hipHostFree", api.host_free);
  load_optional(library, "hipMemGetInfo", api.mem_get_info);
  load_optional(library, "hipGetDevicePropertiesR0600", api.get_device_properties);
  load_optional(library, "hipDeviceGetName", api.device_get_name);
  load_optional(library, "hipRuntimeGetVersion", api.runtime_get_version);
  load_optional(library, "hipStreamGetDevice", api.stream_get_device);
  load_optional(library, "hipStreamBeginCapture", api.stream_begin_capture);
  load_optional(library, "hipStreamEndCapture", api.stream_end_capture);
  load_optional(library, "hipGraphInstantiateWithFlags", api.graph_instantiate);
  load_optional(library, "hipGraphLaunch", api.graph_launch);
  load_optional(library, "hipGraphExecDestroy", api.graph_exec_destroy);
  load_optional(library, "hipGraphDestroy", api.graph_destroy);
  load_optional(library, "hipdnnPortArchitecture_ext", api.architecture);
  load_optional(library, "hipdnnPortLastKernelError_ext", api.last_kernel_error);
  load_optional(library, "hipdnnHostSetModuleThreads_ext", api.set_module_threads);
  load_optional(library, "hipdnnCudaLaunchWaitingKernel_ext", api.launch_waiting_kernel);
  return api;
}

HipdnnApi load_hipdnn(const Opened& library) {
  HipdnnApi api;
  load(library, "hipdnnCreate", api.create);
  load(library, "hipdnnDestroy", api.destroy);
  load(library, "hipdnnSetStream", api.set_stream);
  load(library, "hipdnnBackendCreateDescriptor", api.create_descriptor);
  load(library, "hipdnnBackendDestroyDescriptor", api.destroy_descriptor);
  load(library, "hipdnnBackendFinalize", api.finalize);
  load(library, "hipdnnBackendSetAttribute", api.set_attribute);
  load(library, "hipdnnBackendGetAttribute", api.get_attribute);
  load(library, "hipdnnBackendExecute", api.execute);
  load(library, "hipdnnGetErrorString", api.get_error_string);
  load(library, "hipdnnGetLastErrorString", api.get_last_error_string);
  load_optional(library, "hipdnnGetEngineCount_ext", api.get_engine_count);
  load_optional(library, "hipdnnGetEngineInfo_ext", api.get_engine_info);
  load_optional(library, "hipdnnVersionString_ext", api.version_string);
  load_optional(library, "hipdnnGetHeuristicPolicyCount_ext", api.get_policy_count);
  load_optional(library, "hipdnnGetHeuristicPolicyInfo_ext", api.get_policy_info);
  load_optional(library, "hipdnnBackendGetSerializedExecutionPlan_ext", api.serialize_plan);
  load_optional(library, "hipdnnBackendCreateAndDeserializeExecutionPlan_ext", api.deserialize_plan);
  load_optional(library, "hipdnnSetUserLogCallback_ext", api.set_log_callback);
  load_optional(library, "hipdnnBackendSetGlobalLogLevel_ext", api.set_log_level);
  load_optional(library, "hipdnnBackendGetGlobalLogLevel_ext", api.get_log_level);
  load_optional(library, "hipdnnSetEnginePluginPaths_ext", api.set_plugin_paths);
  load_optional(library, "hipdnnGetLoadedEnginePluginPaths_ext", api.get_loaded_plugin_paths);
  load_own(library, "hipdnnCreate", "hipdnnHostSetThreads_ext", api.set_threads);
  load_own(library, "hipdnnCreate", "hipdnnCudaAllowTf32_ext", api.allow_tf32);
  load_own(library, "hipdnnCreate", "hipdnnPortDescribePlan_ext", api.describe_plan);
  return api;
}

const PortLibraries& find_port(std::string_view name) {
  std::string known;
  for (const PortLibraries& port : kPorts) {
    if (port.port.name == name) return port;
    known += (known.empty() ? "'" : ", '") + std::string(port.port.name) + "'";
  }
  throw DeviceError("port '" + std::string(name) + "' is unknown: expected one of " + known);
}

}  // namespace

std::shared_ptr<const Library> Library::open(std::string_view port, const std::string& directory) {
  const PortLibraries& found = find_port(port);
  const Opened hip = open_first(found, found.hip, directory);
  const Opened hipdnn = open_first(found, found.hipdnn, directory);
  std::shared_ptr<Library> library(new Library());
  library->port_ = &found.port;
  library->hip_ = load_hip(hip);
  library->hipdnn_ = load_hipdnn(hipdnn);
  check_descriptors(hipdnn, library->hipdnn_);
  return library;
}

const Port& Library::port_for_target(std::string_view target) {
  std::string known;
  for (const PortLibraries& port : kPorts) {
    if (port.port.runs(target)) return port.port;
    known += (known.empty() ? "'" : ", '") + std::string(port.port.architectures.empty() ? port.port.name : port.port.architectures) +
             (port.port.architectures.empty() ? "'" : "*'");
  }
  throw ProgramError("program.target: no port runs target '" + std::string(target) + "': known are " + known +
                     "; update hipdnn_mlir or compile the model again");
}

std::string Library::version() const {
  const char* text = hipdnn_.version_string ? hipdnn_.version_string() : nullptr;
  return text ? text : "unknown";
}

std::string Library::runtime_version() const {
  int number = 0;
  const bool is_told = hip_.runtime_get_version != nullptr && hip_.runtime_get_version(&number) == hipSuccess;
  return is_told ? runtime_version_text(number) : "unknown";
}

void Library::listen(hipdnnUserLogCallback_t callback, hipdnnSeverity_t severity, void* user) const {
  if (hipdnn_.set_log_callback == nullptr) return;
  check(hipdnn_, hipdnn_.set_log_callback(callback, severity, HIPDNN_LOG_CALLBACK_SYNC, user), "hipdnnSetUserLogCallback_ext");
  // Whoever sets the environment variable decides.
  const bool is_limited = port_->log_level_limits_callbacks && std::getenv("HIPDNN_LOG_LEVEL") == nullptr;
  if (!is_limited || hipdnn_.set_log_level == nullptr || hipdnn_.get_log_level == nullptr) return;
  hipdnnSeverity_t level = HIPDNN_SEV_OFF;
  check(hipdnn_, hipdnn_.get_log_level(&level), "hipdnnBackendGetGlobalLogLevel_ext");
  if (level > severity) check(hipdnn_, hipdnn_.set_log_level(severity), "hipdnnBackendSetGlobalLogLevel_ext");
}

}  // namespace hipdnn_rt
