#include "hipdnn_rt/device.h"

#include <array>

#include "hipdnn_rt/descriptor.h"
#include "hipdnn_rt/error.h"
#include "hipdnn_rt/plan_cache.h"

namespace hipdnn_rt {
namespace {

/// Answers the number of devices.
int check_ordinal(const Library& library, int ordinal) {
  int count = 0;
  check(library.hip(), library.hip().get_device_count(&count), "hipGetDeviceCount");
  if (ordinal < 0 || ordinal >= count) {
    throw DeviceError("port '" + std::string(library.port().name) + "': device " + std::to_string(ordinal) + " does not exist: " +
                      std::to_string(count) + " found");
  }
  return count;
}

std::string read_architecture(const Library& library, int ordinal) {
  std::array<char, 64> text{};
  if (library.hip().architecture == nullptr) return {};
  check(library.hip(), library.hip().architecture(ordinal, text.data(), text.size()), "hipdnnPortArchitecture_ext");
  return text.data();
}

/// Try the extension on an unfinalized plan: a library without it refuses the attribute and nothing else happens.
bool probe_constants(const std::shared_ptr<const Library>& library) {
  Descriptor plan(library, HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  const std::int64_t uid = 1;
  const hipdnnStatus_t status =
      plan.try_set(extension_attribute(HIPDNN_ATTR_EXECUTION_PLAN_CONSTANT_UIDS_MLIR_EXT), HIPDNN_TYPE_INT64, 1, &uid);
  // Read the message away: it must not appear in a later error.
  if (status != HIPDNN_STATUS_SUCCESS) describe_failure(library->hipdnn(), status);
  return status == HIPDNN_STATUS_SUCCESS;
}

std::map<std::int64_t, std::string> list_engines(const HipdnnApi& api, hipdnnHandle_t handle) {
  std::map<std::int64_t, std::string> engines;
  std::size_t count = 0;
  if (api.get_engine_count == nullptr || api.get_engine_info == nullptr) return engines;
  check(api, api.get_engine_count(handle, &count), "hipdnnGetEngineCount_ext");
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t id = 0;
    std::size_t name = 0, plugin = 0, version = 0, type = 0;
    const auto call = "hipdnnGetEngineInfo_ext(" + std::to_string(i) + ")";
    check(api, api.get_engine_info(handle, i, &id, nullptr, &name, nullptr, &plugin, nullptr, &version, nullptr, &type), call);
    std::string texts[4] = {std::string(name + 1, '\0'), std::string(plugin + 1, '\0'), std::string(version + 1, '\0'),
                            std::string(type + 1, '\0')};
    check(api, api.get_engine_info(handle, i, &id, texts[0].data(), &name, texts[1].data(), &plugin, texts[2].data(), &version,
                                   texts[3].data(), &type), call);
    engines[id] = texts[0].c_str();
  }
  return engines;
}

}  // namespace

Device::Device(std::shared_ptr<const Library> library, Options options)
    : library_(std::move(library)), options_(options), plans_(std::make_unique<PlanCache>()) {
  has_choice_ = check_ordinal(*library_, options_.ordinal) > 1;
  activate();
  const Handle handle = create_handle(nullptr);
  architecture_ = read_architecture(*library_, options_.ordinal);
  takes_constants_ = probe_constants(library_);
  engine_names_ = list_engines(library_->hipdnn(), handle.get());
}

Device::~Device() = default;

bool Device::uses_graphs() const {
  const HipApi& hip = library_->hip();
  return options_.uses_graphs && hip.stream_begin_capture != nullptr && hip.stream_end_capture != nullptr && hip.graph_instantiate != nullptr &&
         hip.graph_launch != nullptr && hip.graph_exec_destroy != nullptr && hip.graph_destroy != nullptr;
}

void Device::activate() const {
  if (has_choice_) check(library_->hip(), library_->hip().set_device(options_.ordinal), "hipSetDevice");
}

DeviceBuffer Device::allocate(std::size_t bytes) const {
  activate();
  void* raw = nullptr;
  check(library_->hip(), library_->hip().malloc(&raw, bytes), "hipMalloc(" + std::to_string(bytes) + " bytes)");
  return {library_, raw};
}

PinnedBuffer Device::allocate_pinned(std::size_t bytes) const {
  if (!has_pinned_memory()) {
    throw DeviceError("port '" + std::string(port().name) + "' has no pinned host memory (hipHostMalloc, hipHostFree); use ordinary memory");
  }
  activate();
  void* raw = nullptr;
  check(library_->hip(), library_->hip().host_malloc(&raw, bytes, hipHostMallocDefault), "hipHostMalloc(" + std::to_string(bytes) + " bytes)");
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

Event Device::create_event(bool is_timed) const {
  activate();
  hipEvent_t raw = nullptr;
  check(library_->hip(), library_->hip().event_create(&raw, is_timed ? hipEventDefault : hipEventDisableTiming), "hipEventCreateWithFlags");
  return {library_, raw};
}

Handle Device::create_handle(hipStream_t stream) const {
  activate();
  const HipdnnApi& api = library_->hipdnn();
  hipdnnHandle_t raw = nullptr;
  check(api, api.create(&raw), "hipdnnCreate");
  Handle handle(library_, raw);
  if (stream != nullptr) check(api, api.set_stream(raw, stream), "hipdnnSetStream");
  if (options_.threads > 0 && api.set_threads != nullptr) check(api, api.set_threads(raw, options_.threads), "hipdnnHostSetThreads_ext");
  return handle;
}

}  // namespace hipdnn_rt
