// The N-th of some calls fails, or all from there on: those of a port's functions, of operator new, of system calls.
#pragma once

#include <atomic>
#include <type_traits>

#include "device/library.h"

namespace faults {

/// What fails.
enum class Kind { none, port, memory, system, thread };

/// Which call fails, and which has.
struct Plan {
  std::atomic<Kind> kind{Kind::none};
  std::atomic<bool> is_on{false};
  /// Whether the calls behind it fail, too, as those of a device that is lost.
  std::atomic<bool> is_lasting{false};
  /// Called where lasting failures begin.
  std::atomic<void (*)()> on_loss{nullptr};
  std::atomic<long> left{0};
  /// The name of the first call that failed; null where there were fewer.
  std::atomic<const char*> struck{nullptr};

  /// Let the `number`-th call of a kind fail that comes while the plan is on, from 1 on.
  void arm(Kind what, long number, bool lasts = false) {
    left = number;
    is_lasting = lasts;
    struck = nullptr;
    kind = what;
  }
  bool strikes(Kind what, const char* name) {
    if (!is_on.load(std::memory_order_relaxed) || kind != what) return false;
    const long before = left.fetch_sub(1);
    if (before == 1) {
      struck = name;
      if (is_lasting && on_loss != nullptr) on_loss.load()();
    }
    return before == 1 || (before < 1 && is_lasting);
  }
};

// Reached from operator new, so constant-initialized and without a destructor.
inline constinit Plan plan;

/// Stands for one function of a port.
template <auto Member, class Function>
struct Thunk;
template <auto Member, class Result, class... Arguments>
struct Thunk<Member, Result (*)(Arguments...)> {
  static inline Result (*original)(Arguments...) = nullptr;
  static inline const char* name = nullptr;
  static Result call(Arguments... arguments) {
    if (plan.strikes(Kind::port, name)) return failure();
    return original(arguments...);
  }
  static Result failure() {
    if constexpr (std::is_same_v<Result, hipdnnStatus_t>) return HIPDNN_STATUS_EXECUTION_FAILED;
    else return static_cast<Result>(hipErrorOutOfMemory);
  }
};

template <auto Member, class Api>
void install(Api& api, const char* name) {
  using Made = Thunk<Member, std::remove_cvref_t<decltype(api.*Member)>>;
  if (api.*Member == nullptr) return;
  Made::original = api.*Member;
  Made::name = name;
  api.*Member = &Made::call;
}

/// Have the plan asked in all functions of a port that can fail but those that give something back: what they do not free is not freed.
inline void install_all(const hipdnn_rt::Library& library) {
  using hipdnn_rt::HipApi;
  using hipdnn_rt::HipdnnApi;
  auto& hip = const_cast<HipApi&>(library.hip());
  install<&HipApi::get_device_count>(hip, "hipGetDeviceCount");
  install<&HipApi::set_device>(hip, "hipSetDevice");
  install<&HipApi::malloc>(hip, "hipMalloc");
  install<&HipApi::memcpy_async>(hip, "hipMemcpyAsync");
  install<&HipApi::stream_create>(hip, "hipStreamCreateWithFlags");
  install<&HipApi::stream_synchronize>(hip, "hipStreamSynchronize");
  install<&HipApi::stream_wait_event>(hip, "hipStreamWaitEvent");
  install<&HipApi::event_create>(hip, "hipEventCreateWithFlags");
  install<&HipApi::event_record>(hip, "hipEventRecord");
  install<&HipApi::event_synchronize>(hip, "hipEventSynchronize");
  install<&HipApi::event_elapsed_time>(hip, "hipEventElapsedTime");
  install<&HipApi::module_load_data>(hip, "hipModuleLoadData");
  install<&HipApi::module_get_function>(hip, "hipModuleGetFunction");
  install<&HipApi::module_launch_kernel>(hip, "hipModuleLaunchKernel");
  install<&HipApi::host_malloc>(hip, "hipHostMalloc");
  install<&HipApi::mem_get_info>(hip, "hipMemGetInfo");
  install<&HipApi::get_device_properties>(hip, "hipGetDeviceProperties");
  install<&HipApi::device_get_name>(hip, "hipDeviceGetName");
  install<&HipApi::runtime_get_version>(hip, "hipRuntimeGetVersion");
  install<&HipApi::stream_get_device>(hip, "hipStreamGetDevice");
  install<&HipApi::stream_begin_capture>(hip, "hipStreamBeginCapture");
  install<&HipApi::stream_end_capture>(hip, "hipStreamEndCapture");
  install<&HipApi::graph_instantiate>(hip, "hipGraphInstantiateWithFlags");
  install<&HipApi::graph_launch>(hip, "hipGraphLaunch");
  install<&HipApi::architecture>(hip, "architecture");
  install<&HipApi::set_module_threads>(hip, "set_module_threads");
  auto& hipdnn = const_cast<HipdnnApi&>(library.hipdnn());
  install<&HipdnnApi::create>(hipdnn, "hipdnnCreate");
  install<&HipdnnApi::set_stream>(hipdnn, "hipdnnSetStream");
  install<&HipdnnApi::create_descriptor>(hipdnn, "hipdnnBackendCreateDescriptor");
  install<&HipdnnApi::finalize>(hipdnn, "hipdnnBackendFinalize");
  install<&HipdnnApi::set_attribute>(hipdnn, "hipdnnBackendSetAttribute");
  install<&HipdnnApi::get_attribute>(hipdnn, "hipdnnBackendGetAttribute");
  install<&HipdnnApi::execute>(hipdnn, "hipdnnBackendExecute");
  install<&HipdnnApi::get_engine_count>(hipdnn, "hipdnnGetEngineCount_ext");
  install<&HipdnnApi::get_engine_info>(hipdnn, "hipdnnGetEngineInfo_ext");
  install<&HipdnnApi::get_policy_count>(hipdnn, "hipdnnGetHeuristicPolicyCount_ext");
  install<&HipdnnApi::serialize_plan>(hipdnn, "hipdnnBackendGetSerializedExecutionPlan_ext");
  install<&HipdnnApi::deserialize_plan>(hipdnn, "hipdnnBackendCreateAndDeserializeExecutionPlan_ext");
  install<&HipdnnApi::set_threads>(hipdnn, "set_threads");
  install<&HipdnnApi::describe_plan>(hipdnn, "describe_plan");
  install<&HipdnnApi::allow_tf32>(hipdnn, "allow_tf32");
}

}  // namespace faults
