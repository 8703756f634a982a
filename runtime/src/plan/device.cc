#include "plan/device.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "device/error.h"
#include "plan/descriptor.h"
#include "plan/plan_cache.h"
#include "plan/plan_store.h"
#include "plan/proposals.h"
#include "plan/reference.h"

namespace hipdnn_rt {
namespace {

/// Answers the number of devices.
int check_ordinal(const Library& library, int ordinal) {
  int count = 0;
  check(library.hip(), library.hip().get_device_count(&count), "hipGetDeviceCount");
  if (ordinal < 0 || ordinal >= count) {
    throw DeviceError("port '" + std::string(library.port().name) + "': device " + std::to_string(ordinal) + " does not exist: " +
                      std::to_string(count) + " found" + (count > 0 ? ", numbered from 0" : ""));
  }
  return count;
}

/// AMD's name of the instruction set, "gfx942:sramecc+:xnack-", without its modes: code is made for all of them.
std::string read_amd_architecture(const Library& library, int ordinal) {
  alignas(8) std::array<char, 2 * hipDevicePropR0600Bytes> properties{};  // with room for fields that later versions may add
  check(library.hip(), library.hip().get_device_properties(properties.data(), ordinal), "hipGetDeviceProperties");
  const std::string_view field(properties.data() + hipDevicePropR0600ArchName, hipDevicePropR0600ArchNameBytes);
  const std::string_view name = field.substr(0, field.find_first_of(std::string_view(":\0", 2)));
  return std::string(name.starts_with(library.port().architectures) ? name : std::string_view());
}

std::string read_architecture(const Library& library, int ordinal) {
  std::array<char, 64> text{};
  if (library.hip().architecture == nullptr) {
    return library.hip().get_device_properties == nullptr ? std::string() : read_amd_architecture(library, ordinal);
  }
  check(library.hip(), library.hip().architecture(ordinal, text.data(), text.size()), "hipdnnPortArchitecture_ext");
  return text.data();
}

/// Try an attribute of numbers on an unfinalized descriptor: a library without it refuses it and nothing else happens.
bool takes_numbers(const std::shared_ptr<const Library>& library, hipdnnBackendDescriptorType_t type, hipdnnBackendAttributeName_t name) {
  Descriptor descriptor(library, type);
  const std::int64_t number = 1;
  const hipdnnStatus_t status = descriptor.try_set(name, HIPDNN_TYPE_INT64, 1, &number);
  if (status != HIPDNN_STATUS_SUCCESS) take_last_error(library->hipdnn());  // it must not appear in a later error
  return status == HIPDNN_STATUS_SUCCESS;
}

/// A text of hipDNN's two-call functions: how long it is, then what it is.
struct Text {
  std::size_t length = 0;
  std::string text;

  char* make_room() {
    text.assign(length + 1, '\0');
    return text.data();
  }
  std::string str() const { return text.c_str(); }
};

std::vector<EngineInfo> list_engines(const HipdnnApi& api, hipdnnHandle_t handle) {
  std::vector<EngineInfo> engines;
  std::size_t count = 0;
  if (api.get_engine_count == nullptr || api.get_engine_info == nullptr) return engines;
  check(api, api.get_engine_count(handle, &count), "hipdnnGetEngineCount_ext");
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t id = 0;
    Text name, plugin, version, type;
    const auto call = "hipdnnGetEngineInfo_ext(" + std::to_string(i) + ")";
    check(api, api.get_engine_info(handle, i, &id, nullptr, &name.length, nullptr, &plugin.length, nullptr, &version.length, nullptr, &type.length),
          call);
    check(api, api.get_engine_info(handle, i, &id, name.make_room(), &name.length, plugin.make_room(), &plugin.length, version.make_room(),
                                   &version.length, type.make_room(), &type.length), call);
    engines.push_back({id, name.str(), plugin.str(), version.str()});
  }
  return engines;
}

/// Names of heuristic policies, in the library's order. What they are is for people alone, so a library that fails to tell has none.
std::vector<std::string> list_policies(const HipdnnApi& api, hipdnnHandle_t handle) {
  std::vector<std::string> policies;
  std::size_t count = 0;
  if (api.get_policy_count == nullptr || api.get_policy_info == nullptr) return policies;
  hipdnnStatus_t status = api.get_policy_count(handle, &count);
  for (std::size_t i = 0; status == HIPDNN_STATUS_SUCCESS && i < count; ++i) {
    std::int64_t id = 0;
    Text name, plugin, version, interface;
    status = api.get_policy_info(handle, i, &id, nullptr, &name.length, nullptr, &plugin.length, nullptr, &version.length, nullptr,
                                 &interface.length);
    if (status != HIPDNN_STATUS_SUCCESS) break;
    status = api.get_policy_info(handle, i, &id, name.make_room(), &name.length, plugin.make_room(), &plugin.length, version.make_room(),
                                 &version.length, interface.make_room(), &interface.length);
    if (status == HIPDNN_STATUS_SUCCESS) policies.push_back(name.str());
  }
  if (status != HIPDNN_STATUS_SUCCESS) take_last_error(api);
  return policies;
}

std::string read_name(const HipApi& api, int ordinal) {
  std::array<char, 256> text{};
  if (api.device_get_name == nullptr || api.device_get_name(text.data(), static_cast<int>(text.size() - 1), ordinal) != hipSuccess) return {};
  return text.data();
}

/// Throw DeviceError for an allocation that failed; `memory` is what is left on the device, where that is what was asked for and it tells.
[[noreturn]] void refuse_allocation(const HipApi& api, hipError_t status, const std::string& call, const std::string& memory) {
  const std::string hint = status == hipErrorOutOfMemory ? memory + "; use a smaller batch or free memory" : std::string();
  throw DeviceError(call + ": " + describe_failure(api, status) + hint);
}

/// " (12 of 81559 MiB are free)"; empty where the library does not tell.
std::string describe_memory(const HipApi& api) {
  MemoryInfo info{};
  if (api.mem_get_info == nullptr || api.mem_get_info(&info.free_bytes, &info.total_bytes) != hipSuccess) return {};
  return " (" + std::to_string(info.free_bytes >> 20) + " of " + std::to_string(info.total_bytes >> 20) + " MiB are free)";
}

/// "A, B and C": the first dozen of the names, and how many more there are.
std::string list_names(const std::vector<std::string>& names) {
  constexpr std::size_t most = 12;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > most ? text + " and " + std::to_string(names.size() - most) + " more" : text;
}

/// The id of the engine of that name, which the caller asked for. A library that lists no engines is believed to have it.
std::int64_t find_engine(const Port& port, const std::vector<EngineInfo>& engines, const std::string& name) {
  const auto found = std::ranges::find(engines, name, &EngineInfo::name);
  if (found != engines.end()) return found->id;
  if (engines.empty()) return engine_id_of(name);
  std::vector<std::string> names;
  for (const EngineInfo& engine : engines) names.push_back(engine.name);
  throw InputError("engine '" + name + "' is unknown: port '" + std::string(port.name) + "' has " + list_names(names));
}

void check_knobs(const DeviceOptions& options) {
  if (!options.knobs.empty() && options.engine.empty()) throw InputError("knobs are set for one engine, and none is named: name it, too");
}

std::string line_of(std::string_view name, std::string_view value) { return std::string(name) + "=" + std::string(value) + "\n"; }

}  // namespace

Device::Device(std::shared_ptr<const Library> library, DeviceOptions options, DeviceEnvironment environment)
    : library_(std::move(library)),
      options_(std::move(options)),
      environment_(std::move(environment)),
      plugin_paths_(located(options_.plugin_dirs, options_.plugin_mode)),
      plans_(std::make_unique<PlanCache>()) {
  has_choice_ = check_ordinal(*library_, options_.device) > 1;
  activate();
  const Handle handle = create_handle(nullptr);
  architecture_ = read_architecture(*library_, options_.device);
  takes_constants_ = takes_numbers(library_, HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                                   extension_attribute(HIPDNN_ATTR_EXECUTION_PLAN_CONSTANT_UIDS_MLIR_EXT));
  name_ = read_name(library_->hip(), options_.device);
  engines_ = list_engines(library_->hipdnn(), handle.get());
  for (const EngineInfo& engine : engines_) engine_names_[engine.id] = engine.name;
  policies_ = list_policies(library_->hipdnn(), handle.get());
  policy_order_ = order_policies();
  read_plugins(handle.get());
  check_knobs(options_);
  if (!options_.engine.empty()) preferred_engine_ = find_engine(port(), engines_, options_.engine);
  reference_ = open_reference();
  if (!options_.plan_cache.empty()) {
    plan_store_ = std::make_unique<PlanStore>(options_.plan_cache, environment_.plan_cache_bytes, plan_setting(), environment_.log);
  }
}

std::unique_ptr<const Reference> Device::open_reference() const {
  if (!options_.compare_plans || port().device_memory_is_host_memory) return nullptr;
  try {
    auto host = std::make_shared<const Device>(Library::open("host", environment_.reference_directory), DeviceOptions{.threads = options_.threads});
    return std::make_unique<const Reference>(std::move(host));
  } catch (const DeviceError& error) {
    log(HIPDNN_SEV_WARN, "plans are used without having been compared: " + std::string(error.what()));
    return nullptr;
  }
}

std::vector<std::int64_t> Device::order_policies() const {
  std::vector<std::int64_t> order;
  if (options_.policies.empty()) return order;
  const std::string port_name(port().name);
  if (!takes_numbers(library_, HIPDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, HIPDNN_ATTR_ENGINEHEUR_POLICY_ORDER_EXT)) {
    throw InputError("policies: the hipDNN library of port '" + port_name + "' (" + library_->version() + ") has no policies to choose from");
  }
  for (const std::string& name : options_.policies) {
    // A library that lists none is believed to have it, as with engines.
    if (!policies_.empty() && std::ranges::find(policies_, name) == policies_.end()) {
      throw InputError("policy '" + name + "' is unknown: port '" + port_name + "' has " + list_names(policies_));
    }
    order.push_back(engine_id_of(name));
  }
  return order;
}

void Device::read_plugins(hipdnnHandle_t handle) {
  const HipdnnApi& api = library_->hipdnn();
  plugins_ = loaded_plugins(api, handle);
  if (api.get_loaded_plugin_paths == nullptr) return;
  for (const std::string& path : paths_without_effect(plugin_paths_, plugins_)) {
    log(HIPDNN_SEV_WARN, "plugin_dirs: the library loads no engine plugin from " + path + "; its own log says why");
  }
}

std::string Device::library_setting() const {
  std::string setting;
  const auto add = [&](std::string_view name, std::string_view value) { setting += line_of(name, value); };
  add("port", port().name);
  add("device", name_);
  add("architecture", architecture_);
  add("library", library_->version());
  add("runtime", library_->runtime_version());
  for (const EngineInfo& engine : engines_) add(engine.name, engine.plugin + " " + engine.version);
  for (const std::string& path : plugins_) add("plugin", path);
  for (const std::string& policy : options_.policies) add("policy", policy);
  add("tf32", allows_tf32() ? "1" : "0");
  return setting;
}

std::string Device::plan_setting() const {
  std::string knobs;
  for (const auto& [name, value] : options_.knobs) knobs += line_of("knob", name + "=" + value);
  return library_setting() + line_of("threads", std::to_string(options_.threads)) + line_of("engine", options_.engine) + knobs +
         line_of("compared", reference_ ? reference_->version() : "no");
}

Device::~Device() = default;

bool Device::runs(std::string_view target) const {
  constexpr std::string_view nvidia = "sm_";
  if (!port().runs(target)) return false;
  if (architecture_.empty() || target == architecture_) return true;
  // PTX for an older NVIDIA architecture runs on a newer one; everything else runs on its own architecture alone.
  if (!architecture_.starts_with(nvidia) || !target.starts_with(nvidia)) return false;
  return std::atoi(std::string(target.substr(nvidia.size())).c_str()) <= std::atoi(architecture_.c_str() + nvidia.size());
}

bool Device::uses_graphs() const {
  const HipApi& hip = library_->hip();
  return options_.graph_capture && hip.stream_begin_capture != nullptr && hip.stream_end_capture != nullptr && hip.graph_instantiate != nullptr &&
         hip.graph_launch != nullptr && hip.graph_exec_destroy != nullptr && hip.graph_destroy != nullptr;
}

void Device::activate() const {
  if (has_choice_) check(library_->hip(), library_->hip().set_device(options_.device), "hipSetDevice");
}

DeviceBuffer Device::allocate(std::size_t bytes) const {
  activate();
  void* raw = nullptr;
  const hipError_t status = library_->hip().malloc(&raw, bytes);
  if (status != hipSuccess) {
    refuse_allocation(library_->hip(), status, "hipMalloc(" + std::to_string(bytes) + " bytes)", describe_memory(library_->hip()));
  }
  return {library_, raw};
}

PinnedBuffer Device::allocate_pinned(std::size_t bytes) const {
  if (!has_pinned_memory()) {
    throw DeviceError("port '" + std::string(port().name) + "' has no pinned host memory (hipHostMalloc, hipHostFree); use ordinary memory");
  }
  activate();
  void* raw = nullptr;
  const hipError_t status = library_->hip().host_malloc(&raw, bytes, hipHostMallocDefault);
  if (status != hipSuccess) refuse_allocation(library_->hip(), status, "hipHostMalloc(" + std::to_string(bytes) + " bytes)", {});
  return {library_, raw};
}

std::optional<MemoryInfo> Device::memory_info() const {
  if (library_->hip().mem_get_info == nullptr) return std::nullopt;
  activate();
  MemoryInfo info{};
  check(library_->hip(), library_->hip().mem_get_info(&info.free_bytes, &info.total_bytes), "hipMemGetInfo");
  return info;
}

Stream Device::create_stream() const {
  activate();
  hipStream_t raw = nullptr;
  check(library_->hip(), library_->hip().stream_create(&raw, hipStreamNonBlocking), "hipStreamCreateWithFlags");
  return {library_, raw};
}

void Device::check_stream(hipStream_t stream) const {
  if (library_->hip().stream_get_device == nullptr || stream == nullptr || stream == hipStreamPerThread) return;
  activate();
  int found = options_.device;
  check(library_->hip(), library_->hip().stream_get_device(stream, &found), "hipStreamGetDevice");
  if (found == options_.device) return;
  throw InputError("the stream is of GPU " + std::to_string(found) + ", the session runs on GPU " + std::to_string(options_.device));
}

Event Device::create_event(bool is_timed) const {
  activate();
  hipEvent_t raw = nullptr;
  check(library_->hip(), library_->hip().event_create(&raw, is_timed ? hipEventDefault : hipEventDisableTiming), "hipEventCreateWithFlags");
  return {library_, raw};
}

Handle Device::create_handle(hipStream_t stream) const {
  activate();
  const HipdnnApi& api = library_->hipdnn();
  use_plugins(*library_, plugin_paths_);
  hipdnnHandle_t raw = nullptr;
  check(api, api.create(&raw), "hipdnnCreate");
  Handle handle(library_, raw);
  if (stream != nullptr) check(api, api.set_stream(raw, stream), "hipdnnSetStream");
  if (api.allow_tf32 != nullptr) check(api, api.allow_tf32(raw, allows_tf32() ? 1 : 0), "hipdnnCudaAllowTf32_ext");
  if (options_.threads > 0 && api.set_threads != nullptr) check(api, api.set_threads(raw, options_.threads), "hipdnnHostSetThreads_ext");
  return handle;
}

}  // namespace hipdnn_rt
