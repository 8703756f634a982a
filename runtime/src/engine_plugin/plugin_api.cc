// The functions of hipDNN's interface of engine plugins.
#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "engine_plugin/engine_config.h"
#include "engine_plugin/failure.h"
#include "engine_plugin/graph_reader.h"
#include "engine_plugin/host_engines.h"
#include "hipdnn_plugin.h"

using namespace hipdnn_plugin;

#define HIPDNN_PLUGIN_EXPORT __attribute__((visibility("default")))

/// What a context needs it has itself. Executions take their place on the stream where memory is a GPU's.
struct HipdnnEnginePluginHandle {
  std::atomic<hipStream_t> stream = nullptr;
};

struct HipdnnEnginePluginExecutionContext {
  std::unique_ptr<Context> context;
};

namespace {

constexpr const char* plugin_name = "hipdnn_cpu_plugin";
/// Of the interface. Ragged offsets, which 1.3.0 brought too, are refused graph by graph.
constexpr const char* interface_version = "1.4.0";

std::span<const std::byte> bytes_of(const hipdnnPluginConstData_t* data, std::string_view name) {
  const hipdnnPluginConstData_t& given = require(data, name);
  return {&require(static_cast<const std::byte*>(given.ptr), name), given.size};
}

/// Memory that the caller gives back through `release`.
void give(const std::vector<std::byte>& bytes, hipdnnPluginConstData_t& data) {
  auto* copy = new std::byte[bytes.size()];
  std::ranges::copy(bytes, copy);
  data = {copy, bytes.size()};
}

void release(hipdnnPluginConstData_t* data, std::string_view name) {
  delete[] &require(static_cast<const std::byte*>(require(data, name).ptr), name);
  *data = {nullptr, 0};
}

/// As many ids as there is room for; what there are in all.
std::uint32_t copy_ids(std::span<const std::int64_t> ids, std::int64_t* to, std::uint32_t capacity) {
  if (capacity > 0) std::ranges::copy(ids.first(std::min<std::size_t>(ids.size(), capacity)), &require(to, "engine ids"));
  return static_cast<std::uint32_t>(ids.size());
}

const HostEngine* find_engine(std::int64_t id) {
  const auto found = std::ranges::find(host_engines(), id, &HostEngine::id);
  return found == host_engines().end() ? nullptr : &*found;
}

Context& context_of(hipdnnEnginePluginHandle_t handle, hipdnnEnginePluginExecutionContext_t context) {
  require(handle, "handle");
  return *require(context, "execution context").context;
}

std::unique_ptr<Context> make_context(const hipdnnPluginConstData_t* configuration, const hipdnnPluginConstData_t* graph) {
  const EngineConfig config = read_engine_config(bytes_of(configuration, "engine configuration"));
  return std::make_unique<Context>(bytes_of(graph, "graph"), config);
}

std::span<const hipdnnPluginDeviceBuffer_t> buffers_of(const hipdnnPluginDeviceBuffer_t* buffers, std::uint32_t count) {
  if (count == 0) return {};
  return {&require(buffers, "device buffers"), count};
}

}  // namespace

extern "C" {

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnPluginGetName(const char** name) {
  return guard(__func__, [&] { require(name, "name") = plugin_name; });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnPluginGetVersion(const char** version) {
  return guard(__func__, [&] { require(version, "version") = HIPDNN_CPU_PLUGIN_VERSION; });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnPluginGetApiVersion(const char** version) {
  return guard(__func__, [&] { require(version, "version") = interface_version; });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnPluginGetType(hipdnnPluginType_t* type) {
  return guard(__func__, [&] { require(type, "type") = HIPDNN_PLUGIN_TYPE_ENGINE; });
}

HIPDNN_PLUGIN_EXPORT void hipdnnPluginGetLastErrorString(const char** error) {
  if (error != nullptr) *error = last_error();
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnPluginSetLoggingCallback(hipdnnCallback_t callback) {
  return guard(__func__, [&] {
    require(callback, "callback");
    set_log_callback(callback);
  });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnPluginSetLogLevel(hipdnnSeverity_t level) {
  return guard(__func__, [&] { set_log_level(level); });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginGetAllEngineIds(int64_t* ids, uint32_t capacity, uint32_t* count) {
  return guard(__func__, [&] {
    require(count, "count");
    std::vector<std::int64_t> all;
    for (const HostEngine& engine : host_engines()) all.push_back(engine.id);
    const std::uint32_t found = copy_ids(all, ids, capacity);
    *count = capacity == 0 ? found : std::min(found, capacity);
  });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginGetEngineName(int64_t id, const char** name) {
  return guard(__func__, [&] {
    require(name, "name");
    const HostEngine* engine = find_engine(id);
    if (engine == nullptr) throw Failure(HIPDNN_PLUGIN_STATUS_NOT_APPLICABLE, "there is no engine " + std::to_string(id));
    *name = engine->name.c_str();
  });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginCreate(hipdnnEnginePluginHandle_t* handle) {
  return guard(__func__, [&] {
    require(handle, "handle");
    host_library();
    *handle = new HipdnnEnginePluginHandle();
  });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginDestroy(hipdnnEnginePluginHandle_t handle) {
  return guard(__func__, [&] { delete &require(handle, "handle"); });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginSetStream(hipdnnEnginePluginHandle_t handle, hipStream_t stream) {
  return guard(__func__, [&] { require(handle, "handle").stream = stream; });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginGetApplicableEngineIds(hipdnnEnginePluginHandle_t handle,
                                                                                   const hipdnnPluginConstData_t* graph, int64_t* ids,
                                                                                   uint32_t capacity, uint32_t* count) {
  return guard(__func__, [&] {
    require(handle, "handle");
    require(count, "count") = 0;
    const auto bytes = bytes_of(graph, "graph");
    try {
      *count = copy_ids(applicable_engines(read_graph(bytes)), ids, capacity);
    } catch (const Failure& failure) {
      // An error would end the search among other plugins' engines.
      if (failure.status() != HIPDNN_PLUGIN_STATUS_NOT_APPLICABLE) throw;
      log(HIPDNN_SEV_INFO, "no engine takes the graph: " + std::string(failure.what()));
    }
  });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginGetEngineDetails(hipdnnEnginePluginHandle_t handle, int64_t id,
                                                                             const hipdnnPluginConstData_t* graph,
                                                                             hipdnnPluginConstData_t* details) {
  return guard(__func__, [&] {
    require(handle, "handle");
    bytes_of(graph, "graph");
    if (find_engine(id) == nullptr) refuse_value("there is no engine " + std::to_string(id));
    give(write_engine_details(id), require(details, "engine details"));
  });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginDestroyEngineDetails(hipdnnEnginePluginHandle_t handle,
                                                                                 hipdnnPluginConstData_t* details) {
  return guard(__func__, [&] {
    require(handle, "handle");
    release(details, "engine details");
  });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginGetWorkspaceSize(hipdnnEnginePluginHandle_t handle,
                                                                             const hipdnnPluginConstData_t* configuration,
                                                                             const hipdnnPluginConstData_t* graph, size_t* bytes) {
  return guard(__func__, [&] {
    require(handle, "handle");
    require(bytes, "workspace size") = make_context(configuration, graph)->plan().workspace_bytes();
  });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginCreateExecutionContext(hipdnnEnginePluginHandle_t handle,
                                                                                   const hipdnnPluginConstData_t* configuration,
                                                                                   const hipdnnPluginConstData_t* graph,
                                                                                   hipdnnEnginePluginExecutionContext_t* context) {
  return guard(__func__, [&] {
    require(handle, "handle");
    require(context, "execution context");
    *context = new HipdnnEnginePluginExecutionContext{make_context(configuration, graph)};
  });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginDestroyExecutionContext(hipdnnEnginePluginHandle_t handle,
                                                                                    hipdnnEnginePluginExecutionContext_t context) {
  return guard(__func__, [&] {
    require(handle, "handle");
    delete &require(context, "execution context");
  });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext(hipdnnEnginePluginHandle_t handle,
                                                                                                 hipdnnEnginePluginExecutionContext_t context,
                                                                                                 size_t* bytes) {
  return guard(__func__, [&] { require(bytes, "workspace size") = context_of(handle, context).plan().workspace_bytes(); });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginExecuteOpGraph(hipdnnEnginePluginHandle_t handle,
                                                                           hipdnnEnginePluginExecutionContext_t context, void* workspace,
                                                                           const hipdnnPluginDeviceBuffer_t* buffers, uint32_t count) {
  return guard(__func__, [&] { context_of(handle, context).execute(workspace, buffers_of(buffers, count), {}, loaded_hip(), handle->stream); });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginExecuteOpGraphWithOverrides(
    hipdnnEnginePluginHandle_t handle, hipdnnEnginePluginExecutionContext_t context, void* workspace, const hipdnnPluginDeviceBuffer_t* buffers,
    uint32_t count, uint32_t override_count, const int64_t* uids, const uint32_t* lengths, const int64_t* const* dims,
    const int64_t* const* strides) {
  return guard(__func__, [&] {
    Context& chosen = context_of(handle, context);
    std::vector<ShapeOverride> overrides;
    for (std::uint32_t i = 0; i < override_count; ++i) {
      const std::size_t rank = (&require(lengths, "lengths"))[i];
      const std::span of_dims(&require((&require(dims, "dims"))[i], "dims"), rank);
      const std::span of_strides(&require((&require(strides, "strides"))[i], "strides"), rank);
      overrides.push_back({(&require(uids, "uids"))[i], {of_dims.begin(), of_dims.end()}, {of_strides.begin(), of_strides.end()}});
    }
    chosen.execute(workspace, buffers_of(buffers, count), std::move(overrides), loaded_hip(), handle->stream);
  });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginSerializeExecutionContext(hipdnnEnginePluginHandle_t handle,
                                                                                      hipdnnEnginePluginExecutionContext_t context,
                                                                                      hipdnnPluginConstData_t* bytes) {
  return guard(__func__, [&] { give(context_of(handle, context).serialize(), require(bytes, "serialized context")); });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginSerializeExecutionContextWithEngineId(hipdnnEnginePluginHandle_t handle, int64_t,
                                                                                                  hipdnnEnginePluginExecutionContext_t context,
                                                                                                  hipdnnPluginConstData_t* bytes) {
  return hipdnnEnginePluginSerializeExecutionContext(handle, context, bytes);
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginDestroySerializedExecutionContext(hipdnnEnginePluginHandle_t handle,
                                                                                              hipdnnPluginConstData_t* bytes) {
  return guard(__func__, [&] {
    require(handle, "handle");
    release(bytes, "serialized context");
  });
}

HIPDNN_PLUGIN_EXPORT hipdnnPluginStatus_t hipdnnEnginePluginCreateExecutionContextFromSerialized(hipdnnEnginePluginHandle_t handle,
                                                                                                 const hipdnnPluginConstData_t* bytes,
                                                                                                 hipdnnEnginePluginExecutionContext_t* context) {
  return guard(__func__, [&] {
    require(handle, "handle");
    require(context, "execution context");
    *context = new HipdnnEnginePluginExecutionContext{Context::restore(bytes_of(bytes, "serialized context"))};
  });
}

}  // extern "C"
