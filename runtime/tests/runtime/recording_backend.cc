// AMD's hipDNN as far as plugins and policies go, in front of the host library, which is found through the dependency on it: what is asked for is
// written down.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "hipdnn_backend.h"

#define RECORDING_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr std::array<std::string_view, 2> policies{"TEST_RULES", "TEST_ORDER"};

struct State {
  std::mutex mutex;
  std::string calls;
  int handles = 0;
  std::vector<std::string> loaded;

  void note(const std::string& line) { calls += line + "\n"; }
};

State& state() {
  static State all;
  return all;
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

/// As hipDNN's two-call functions do: how long a text is with its end, or the text.
void tell(std::string_view text, char* to, std::size_t* length) {
  if (to != nullptr) to[text.copy(to, *length - 1)] = '\0';
  *length = text.size() + 1;
}

std::int64_t id_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return static_cast<std::int64_t>(hash);
}

std::string knob_value(hipdnnBackendAttributeType_t type, std::int64_t count, const void* data) {
  if (type == HIPDNN_TYPE_INT64) return "integer " + std::to_string(*static_cast<const std::int64_t*>(data));
  if (type == HIPDNN_TYPE_DOUBLE) return "number " + std::to_string(*static_cast<const double*>(data));
  return "text " + std::string(static_cast<const char*>(data), static_cast<std::size_t>(count));
}

}  // namespace

/// The calls since the last time.
RECORDING_EXPORT void recording_take_calls(char* text, std::size_t capacity) {
  const std::lock_guard lock(state().mutex);
  text[state().calls.copy(text, capacity - 1)] = '\0';
  state().calls.clear();
}

RECORDING_EXPORT hipdnnStatus_t hipdnnCreate(hipdnnHandle_t* handle) {
  const std::lock_guard lock(state().mutex);
  ++state().handles;
  return next<decltype(&hipdnnCreate)>("hipdnnCreate")(handle);
}

RECORDING_EXPORT hipdnnStatus_t hipdnnDestroy(hipdnnHandle_t handle) {
  const std::lock_guard lock(state().mutex);
  --state().handles;
  return next<decltype(&hipdnnDestroy)>("hipdnnDestroy")(handle);
}

RECORDING_EXPORT hipdnnStatus_t hipdnnSetEnginePluginPaths_ext(size_t count, const char* const* paths, hipdnnPluginLoadingMode_ext_t mode) {
  const std::lock_guard lock(state().mutex);
  std::string line = mode == HIPDNN_PLUGIN_LOADING_ABSOLUTE ? "absolute" : "additive";
  for (std::size_t i = 0; i < count; ++i) line += std::string(" ") + paths[i];
  state().note(line);
  if (state().handles > 0) return HIPDNN_STATUS_NOT_SUPPORTED;
  state().loaded.assign(mode == HIPDNN_PLUGIN_LOADING_ABSOLUTE ? 0 : 1, "/opt/rocm/lib/hipdnn_plugins/engines/libown.so");
  for (std::size_t i = 0; i < count; ++i) {
    if (std::string_view(paths[i]).find("empty") == std::string_view::npos) state().loaded.push_back(std::string(paths[i]) + "/libengine.so");
  }
  return HIPDNN_STATUS_SUCCESS;
}

RECORDING_EXPORT hipdnnStatus_t hipdnnGetLoadedEnginePluginPaths_ext(hipdnnHandle_t, size_t* count, char** paths, size_t* most_length) {
  const std::lock_guard lock(state().mutex);
  const auto& loaded = state().loaded;
  for (std::size_t i = 0; paths != nullptr && i < std::min(loaded.size(), *count); ++i) std::strcpy(paths[i], loaded[i].c_str());
  *count = loaded.size();
  *most_length = 1;
  for (const std::string& path : loaded) *most_length = std::max(*most_length, path.size() + 1);
  return HIPDNN_STATUS_SUCCESS;
}

RECORDING_EXPORT hipdnnStatus_t hipdnnBackendSetAttribute(hipdnnBackendDescriptor_t descriptor, hipdnnBackendAttributeName_t name,
                                                          hipdnnBackendAttributeType_t type, int64_t count, const void* data) {
  const std::lock_guard lock(state().mutex);
  if (name == HIPDNN_ATTR_ENGINEHEUR_POLICY_ORDER_EXT) {
    if (type != HIPDNN_TYPE_INT64) return HIPDNN_STATUS_BAD_PARAM;
    std::string line = "order";
    for (std::int64_t i = 0; i < count; ++i) line.append(" ").append(std::to_string(static_cast<const std::int64_t*>(data)[i]));
    state().note(line);
    return HIPDNN_STATUS_SUCCESS;
  }
  if (name == HIPDNN_ATTR_KNOB_CHOICE_KNOB_TYPE) state().note("knob " + std::string(static_cast<const char*>(data), static_cast<std::size_t>(count)));
  if (name == HIPDNN_ATTR_KNOB_CHOICE_KNOB_VALUE) state().note(knob_value(type, count, data));
  if (name == HIPDNN_ATTR_ENGINECFG_KNOB_CHOICES) {
    state().note("choices");
    return HIPDNN_STATUS_SUCCESS;
  }
  if (name == HIPDNN_ATTR_ENGINEHEUR_MODE) state().note("rank");
  return next<decltype(&hipdnnBackendSetAttribute)>("hipdnnBackendSetAttribute")(descriptor, name, type, count, data);
}

RECORDING_EXPORT hipdnnStatus_t hipdnnGetHeuristicPolicyCount_ext(hipdnnHandle_t, size_t* count) {
  *count = policies.size();
  return HIPDNN_STATUS_SUCCESS;
}

RECORDING_EXPORT hipdnnStatus_t hipdnnGetHeuristicPolicyInfo_ext(hipdnnHandle_t, size_t index, int64_t* id, char* name, size_t* name_length,
                                                                char* plugin, size_t* plugin_length, char* plugin_version,
                                                                size_t* plugin_version_length, char* api_version,
                                                                size_t* api_version_length) {
  if (index >= policies.size()) return HIPDNN_STATUS_BAD_PARAM_OUT_OF_BOUND;
  *id = id_of(policies[index]);
  tell(policies[index], name, name_length);
  tell("recording", plugin, plugin_length);
  tell("1.0", plugin_version, plugin_version_length);
  tell("1.1", api_version, api_version_length);
  return HIPDNN_STATUS_SUCCESS;
}
