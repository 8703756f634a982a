// A port: the pair of libraries that offer the HIP and hipDNN C ABIs, opened at run time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "hip_runtime_abi.h"
#include "hipdnn_backend.h"

namespace hipdnn_rt {

/// The HIP functions the runtime calls. Members under "optional" are null where the library lacks them.
struct HipApi {
  decltype(&::hipGetDeviceCount) get_device_count = nullptr;
  decltype(&::hipSetDevice) set_device = nullptr;
  decltype(&::hipGetErrorString) get_error_string = nullptr;
  decltype(&::hipMalloc) malloc = nullptr;
  decltype(&::hipFree) free = nullptr;
  decltype(&::hipMemcpyAsync) memcpy_async = nullptr;
  decltype(&::hipMemcpy2DAsync) memcpy_2d_async = nullptr;
  decltype(&::hipMemsetAsync) memset_async = nullptr;
  decltype(&::hipStreamCreateWithFlags) stream_create = nullptr;
  decltype(&::hipStreamDestroy) stream_destroy = nullptr;
  decltype(&::hipStreamSynchronize) stream_synchronize = nullptr;
  decltype(&::hipStreamWaitEvent) stream_wait_event = nullptr;
  decltype(&::hipEventCreateWithFlags) event_create = nullptr;
  decltype(&::hipEventRecord) event_record = nullptr;
  decltype(&::hipEventSynchronize) event_synchronize = nullptr;
  decltype(&::hipEventElapsedTime) event_elapsed_time = nullptr;
  decltype(&::hipEventDestroy) event_destroy = nullptr;
  decltype(&::hipModuleLoadData) module_load_data = nullptr;
  decltype(&::hipModuleUnload) module_unload = nullptr;
  decltype(&::hipModuleGetFunction) module_get_function = nullptr;
  decltype(&::hipModuleLaunchKernel) module_launch_kernel = nullptr;

  // Optional.
  decltype(&::hipHostMalloc) host_malloc = nullptr;
  decltype(&::hipHostFree) host_free = nullptr;
  decltype(&::hipMemGetInfo) mem_get_info = nullptr;
  decltype(&::hipGetDevicePropertiesR0600) get_device_properties = nullptr;
  decltype(&::hipDeviceGetName) device_get_name = nullptr;
  decltype(&::hipRuntimeGetVersion) runtime_get_version = nullptr;
  decltype(&::hipStreamGetDevice) stream_get_device = nullptr;
  decltype(&::hipStreamBeginCapture) stream_begin_capture = nullptr;
  decltype(&::hipStreamEndCapture) stream_end_capture = nullptr;
  decltype(&::hipGraphInstantiateWithFlags) graph_instantiate = nullptr;
  decltype(&::hipGraphLaunch) graph_launch = nullptr;
  decltype(&::hipGraphExecDestroy) graph_exec_destroy = nullptr;
  decltype(&::hipGraphDestroy) graph_destroy = nullptr;
  /// The instruction set of a device, as targets are named.
  hipError_t (*architecture)(int device, char* text, std::size_t capacity) = nullptr;
  /// Why the calling thread's last module call failed, for people; empty where it did not.
  const char* (*last_kernel_error)() = nullptr;
  /// Threads that launches of the module's functions may use.
  hipError_t (*set_module_threads)(hipModule_t module, int threads) = nullptr;
  /// hipModuleLaunchKernel for a kernel that waits itself for what is in front of it.
  decltype(&::hipModuleLaunchKernel) launch_waiting_kernel = nullptr;
};

/// The hipDNN functions the runtime calls. Members under "optional" are null where the library lacks them.
struct HipdnnApi {
  decltype(&::hipdnnCreate) create = nullptr;
  decltype(&::hipdnnDestroy) destroy = nullptr;
  decltype(&::hipdnnSetStream) set_stream = nullptr;
  decltype(&::hipdnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&::hipdnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&::hipdnnBackendFinalize) finalize = nullptr;
  decltype(&::hipdnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&::hipdnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&::hipdnnBackendExecute) execute = nullptr;
  decltype(&::hipdnnGetErrorString) get_error_string = nullptr;
  decltype(&::hipdnnGetLastErrorString) get_last_error_string = nullptr;

  // Optional.
  decltype(&::hipdnnGetEngineCount_ext) get_engine_count = nullptr;
  decltype(&::hipdnnGetEngineInfo_ext) get_engine_info = nullptr;
  decltype(&::hipdnnVersionString_ext) version_string = nullptr;
  decltype(&::hipdnnGetHeuristicPolicyCount_ext) get_policy_count = nullptr;
  decltype(&::hipdnnGetHeuristicPolicyInfo_ext) get_policy_info = nullptr;
  decltype(&::hipdnnBackendGetSerializedExecutionPlan_ext) serialize_plan = nullptr;
  decltype(&::hipdnnBackendCreateAndDeserializeExecutionPlan_ext) deserialize_plan = nullptr;
  decltype(&::hipdnnSetUserLogCallback_ext) set_log_callback = nullptr;
  decltype(&::hipdnnBackendSetGlobalLogLevel_ext) set_log_level = nullptr;
  decltype(&::hipdnnBackendGetGlobalLogLevel_ext) get_log_level = nullptr;
  decltype(&::hipdnnSetEnginePluginPaths_ext) set_plugin_paths = nullptr;
  decltype(&::hipdnnGetLoadedEnginePluginPaths_ext) get_loaded_plugin_paths = nullptr;
  /// Threads that graphs planned and executed with this handle may use.
  hipdnnStatus_t (*set_threads)(hipdnnHandle_t handle, int threads) = nullptr;
  /// One line about a finalized plan, NUL-terminated within `capacity` bytes.
  hipdnnStatus_t (*describe_plan)(hipdnnBackendDescriptor_t plan, char* text, std::size_t capacity) = nullptr;
  /// Whether products of f32 that are planned with this handle may round their operands to TF32.
  hipdnnStatus_t (*allow_tf32)(hipdnnHandle_t handle, int is_allowed) = nullptr;
};

/// What the runtime needs to know about a port beyond its two function tables.
struct Port {
  std::string_view name;
  /// Architectures whose programs run on the port start with this; empty where there are none, and programs are compiled for the name.
  std::string_view architectures;
  /// True where a device pointer and a host pointer are the same thing, so nothing is uploaded or staged.
  bool device_memory_is_host_memory;
  /// Alignment of every buffer in the arena, in bytes.
  std::size_t arena_alignment;
  /// True where a log callback gets only what the library's own level lets through, which is nothing unless the environment says otherwise.
  bool log_level_limits_callbacks;

  /// Whether programs compiled for `target` may run here: it is the port's name, or one of its architectures.
  bool runs(std::string_view target) const {
    return target == name || (!architectures.empty() && target.starts_with(architectures));
  }
};

/// A target's name without what is behind it ("gfx942" of "gfx942+fusilli"): what programs hold, and devices compare.
inline std::string_view plain_target(std::string_view target) { return target.substr(0, target.find('+')); }

/// Both tables of one port. Immutable and safe to share between threads; the libraries stay loaded for the life of the process.
class Library {
 public:
  /// Open a port by name ("host", "hip", "cuda"). Libraries that come with this package are looked up in `directory` first, or, where that is
  /// empty, beside the module this code is linked into and in its `lib` folder.
  /// Throws DeviceError for an unknown port, a missing library, and one that is too old: it lacks a required symbol or kind of descriptor.
  static std::shared_ptr<const Library> open(std::string_view port, const std::string& directory = {});

  /// The port that runs programs compiled for `target`. Throws ProgramError where there is none.
  static const Port& port_for_target(std::string_view target);

  const Port& port() const { return *port_; }
  const HipApi& hip() const { return hip_; }
  const HipdnnApi& hipdnn() const { return hipdnn_; }
  /// The hipDNN library's version, or "unknown".
  std::string version() const;
  /// The HIP runtime's version, of a port on CUDA its driver's: "6.2.41133", "12.4"; or "unknown".
  std::string runtime_version() const;
  /// Have the library's lines from this severity on given to a callback. Before the first handle, with which the library loads plugins.
  /// Throws DeviceError where it refuses; nothing where it has no such thing.
  void listen(hipdnnUserLogCallback_t callback, hipdnnSeverity_t severity, void* user) const;

 private:
  Library() = default;

  const Port* port_ = nullptr;
  HipApi hip_;
  HipdnnApi hipdnn_;
};

}  // namespace hipdnn_rt
