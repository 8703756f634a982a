// hipDNN's backend C API: engines, serialization, logging, version.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor.h"
#include "engine.h"
#include "export.h"
#include "graph_json.h"
#include "handle.h"
#include "hipdnn_backend.h"
#include "log.h"
#include "names.h"
#include "plan_descriptors.h"
#include "status.h"

using namespace hipdnn_port;

namespace {

/// One of the two-call strings: a null buffer asks for the size (with terminator), else *length is the buffer's capacity.
void copy_string(std::string_view from, char* buffer, size_t* length, std::string_view argument) {
  size_t& size = require_argument(length, argument);
  const size_t needed = from.size() + 1;
  if (buffer != nullptr) {
    if (size < needed) fail(HIPDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, argument, " needs ", needed, " bytes, the buffer has ", size);
    std::memcpy(buffer, from.data(), from.size());
    buffer[from.size()] = '\0';
  }
  size = needed;
}

std::vector<const Engine*> engines_by_name() {
  std::vector<const Engine*> sorted = engines();
  std::ranges::sort(sorted, {}, &Engine::name);
  return sorted;
}

void check_severity(hipdnnSeverity_t severity) {
  if (severity < HIPDNN_SEV_INFO || severity > HIPDNN_SEV_OFF) fail(HIPDNN_STATUS_BAD_PARAM, "no severity has the value ", severity);
}

}  // namespace

extern "C" {

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnGetEngineCount_ext(hipdnnHandle_t handle, size_t* count) {
  return guard(__func__, [&] {
    require_argument(handle, "handle");
    require_argument(count, "count") = engines().size();
  });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnGetEngineInfo_ext(hipdnnHandle_t handle, size_t index, int64_t* id, char* name, size_t* name_length,
                                                          char* plugin, size_t* plugin_length, char* version, size_t* version_length,
                                                          char* type, size_t* type_length) {
  return guard(__func__, [&] {
    require_argument(handle, "handle");
    const auto sorted = engines_by_name();
    if (index >= sorted.size()) fail(HIPDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "engine index ", index, ", there are ", sorted.size());
    require_argument(id, "id") = engine_id(sorted[index]->name());
    copy_string(sorted[index]->name(), name, name_length, "name");
    copy_string(library_name(), plugin, plugin_length, "plugin name");
    copy_string(hipdnnVersionString_ext(), version, version_length, "plugin version");
    copy_string("engine", type, type_length, "plugin type");
  });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnGetEngineIdByName_ext(hipdnnHandle_t handle, const char* name, int64_t* id) {
  return guard(__func__, [&] {
    require_argument(handle, "handle");
    const std::string_view wanted = &require_argument(name, "name");
    const auto found = std::ranges::find(engines(), wanted, &Engine::name);
    if (found == engines().end()) fail(HIPDNN_STATUS_BAD_PARAM, "no engine is named '", wanted, "'");
    require_argument(id, "id") = engine_id(wanted);
  });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnSetEnginePluginPaths_ext(size_t, const char* const*, hipdnnPluginLoadingMode_ext_t) {
  return guard(__func__, [] { fail(HIPDNN_STATUS_NOT_SUPPORTED, "this library's engines are built in, it loads no plugins"); });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnGetLoadedEnginePluginPaths_ext(hipdnnHandle_t handle, size_t* count, char** paths,
                                                                       size_t* most_length) {
  return guard(__func__, [&] {
    require_argument(handle, "handle");
    require_argument(count, "count") = 0;
    if (paths == nullptr) require_argument(most_length, "most length") = 0;
  });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnBackendGetSerializedJsonGraph_ext(hipdnnBackendDescriptor_t graph, size_t capacity, size_t* size,
                                                                          char* json) {
  return guard(__func__, [&] {
    const Descriptor& object = require_argument(require_argument(graph, "graph").object.get(), "graph");
    if (object.type() != HIPDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
      fail(HIPDNN_STATUS_BAD_PARAM, "graph: expected an operation graph, got ", descriptor_name(object.type()));
    }
    size_t& bytes = require_argument(size, "size");
    bytes = capacity;
    copy_string(graph_to_json(object), json, &bytes, "graph");
  });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnBackendGetSerializedExecutionPlan_ext(hipdnnBackendDescriptor_t plan, size_t capacity, size_t* size,
                                                                             uint8_t* bytes) {
  return guard(__func__, [&] {
    const Descriptor& object = require_argument(require_argument(plan, "plan").object.get(), "plan");
    const auto* finished = dynamic_cast<const ExecutionPlanDescriptor*>(&object);
    if (finished == nullptr) fail(HIPDNN_STATUS_BAD_PARAM, "plan: expected an execution plan, got ", descriptor_name(object.type()));
    if (!finished->finalized()) fail(HIPDNN_STATUS_NOT_INITIALIZED, "plan: it is not finalized");
    const std::string serialized = finished->serialize();
    size_t& needed = require_argument(size, "size");
    needed = serialized.size();
    if (bytes == nullptr) return;
    if (capacity < needed) fail(HIPDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "bytes needs ", needed, " bytes, the buffer has ", capacity);
    std::memcpy(bytes, serialized.data(), needed);
  });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnBackendCreateAndDeserializeExecutionPlan_ext(hipdnnHandle_t handle, hipdnnBackendDescriptor_t* plan,
                                                                                     const uint8_t* bytes, size_t size) {
  return guard(__func__, [&] {
    const HandleState& state = *require_argument(handle, "handle").state;
    hipdnnBackendDescriptor_t& created = require_argument(plan, "plan");
    require_argument(bytes, "bytes");
    created = new hipdnnBackendDescriptor{ExecutionPlanDescriptor::restore({reinterpret_cast<const char*>(bytes), size}, state)};
  });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnSetUserLogCallback_ext(hipdnnUserLogCallback_t callback, hipdnnSeverity_t minimum,
                                                               hipdnnLogCallbackMode_t, void* user) {
  return guard(__func__, [&] {
    check_severity(minimum);
    if (callback == nullptr || user == nullptr) {
      fail(HIPDNN_STATUS_BAD_PARAM, callback == nullptr ? "callback" : "user", " is null; to remove a callback give it, and its user pointer, with severity OFF");
    }
    set_log_callback(callback, minimum, user);
  });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnBackendSetGlobalLogLevel_ext(hipdnnSeverity_t severity) {
  return guard(__func__, [&] {
    check_severity(severity);
    set_log_level(severity);
  });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnBackendGetGlobalLogLevel_ext(hipdnnSeverity_t* severity) {
  return guard(__func__, [&] { require_argument(severity, "severity") = log_level(); });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnGetVersion_ext(const char** version) {
  return guard(__func__, [&] { require_argument(version, "version") = hipdnnVersionString_ext(); });
}

HIPDNN_PORT_EXPORT const char* hipdnnVersionString_ext(void) { return library_version(); }

}  // extern "C"
