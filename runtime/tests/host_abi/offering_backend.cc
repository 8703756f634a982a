// The host's library with what it does not offer: policies that do nothing, and plans as bytes that stand for a plan kept in memory. The variable
// FAULT breaks one rule at a time, so that the cases about these are seen to fail.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "hipdnn_backend.h"

#define EXPORT [[gnu::visibility("default")]]

namespace {

constexpr std::array<const char*, 2> policy_names{"FIRST_POLICY", "SECOND_POLICY"};
constexpr std::size_t plan_bytes = 16;

bool has_fault(std::string_view name) {
  const char* fault = std::getenv("FAULT");
  return fault != nullptr && fault == name;
}

/// The host library's function behind this library's one.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

struct State {
  std::vector<hipdnnBackendDescriptor_t> kept;       ///< plans that were written; never destroyed
  std::vector<hipdnnBackendDescriptor_t> misordered;  ///< heuristics with an order of unknown policies
};

State& state() {
  static State& kept = *new State;
  return kept;
}

bool has(const std::vector<hipdnnBackendDescriptor_t>& list, hipdnnBackendDescriptor_t one) { return std::ranges::find(list, one) != list.end(); }

std::int64_t policy_id(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return static_cast<std::int64_t>(hash);
}

void copy_text(std::string_view text, char* to, std::size_t* size) {
  *size = text.size() + 1;
  if (to != nullptr) std::memcpy(to, text.data(), *size);
}

}  // namespace

extern "C" {

EXPORT hipdnnStatus_t hipdnnGetHeuristicPolicyCount_ext(hipdnnHandle_t handle, size_t* count) {
  if (handle == nullptr) return HIPDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *count = policy_names.size();
  return HIPDNN_STATUS_SUCCESS;
}

EXPORT hipdnnStatus_t hipdnnGetHeuristicPolicyInfo_ext(hipdnnHandle_t, size_t index, int64_t* id, char* name, size_t* name_length, char* plugin,
                                                       size_t* plugin_length, char* plugin_version, size_t* plugin_version_length,
                                                       char* api_version, size_t* api_version_length) {
  if (index >= policy_names.size()) return HIPDNN_STATUS_BAD_PARAM_OUT_OF_BOUND;
  *id = has_fault("policy id") ? static_cast<std::int64_t>(index) : policy_id(policy_names[index]);
  copy_text(policy_names[index], name, name_length);
  copy_text("built in", plugin, plugin_length);
  copy_text("1.0", plugin_version, plugin_version_length);
  copy_text("1.0", api_version, api_version_length);
  return HIPDNN_STATUS_SUCCESS;
}

EXPORT hipdnnStatus_t hipdnnBackendSetAttribute(hipdnnBackendDescriptor_t descriptor, hipdnnBackendAttributeName_t name,
                                                hipdnnBackendAttributeType_t type, int64_t count, const void* data) {
  if (name != HIPDNN_ATTR_ENGINEHEUR_POLICY_ORDER_EXT) {
    return next<decltype(::hipdnnBackendSetAttribute)>("hipdnnBackendSetAttribute")(descriptor, name, type, count, data);
  }
  const auto* ids = static_cast<const std::int64_t*>(data);
  const auto is_policy = [](std::int64_t id) { return std::ranges::find(policy_names, id, policy_id) != policy_names.end(); };
  const bool is_known = std::any_of(ids, ids + count, is_policy);
  if (!is_known && !has_fault("policy order")) state().misordered.push_back(descriptor);
  return HIPDNN_STATUS_SUCCESS;
}

EXPORT hipdnnStatus_t hipdnnBackendFinalize(hipdnnBackendDescriptor_t descriptor) {
  if (has(state().misordered, descriptor)) return HIPDNN_STATUS_INTERNAL_ERROR;
  return next<decltype(::hipdnnBackendFinalize)>("hipdnnBackendFinalize")(descriptor);
}

EXPORT hipdnnStatus_t hipdnnBackendDestroyDescriptor(hipdnnBackendDescriptor_t descriptor) {
  std::erase(state().misordered, descriptor);
  if (has(state().kept, descriptor)) return HIPDNN_STATUS_SUCCESS;
  return next<decltype(::hipdnnBackendDestroyDescriptor)>("hipdnnBackendDestroyDescriptor")(descriptor);
}

EXPORT hipdnnStatus_t hipdnnBackendGetAttribute(hipdnnBackendDescriptor_t descriptor, hipdnnBackendAttributeName_t name,
                                                hipdnnBackendAttributeType_t type, int64_t requested, int64_t* count, void* data) {
  if (name == HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG && has(state().kept, descriptor) && !has_fault("configuration")) {
    return HIPDNN_STATUS_NOT_SUPPORTED;
  }
  return next<decltype(::hipdnnBackendGetAttribute)>("hipdnnBackendGetAttribute")(descriptor, name, type, requested, count, data);
}

EXPORT hipdnnStatus_t hipdnnBackendGetSerializedExecutionPlan_ext(hipdnnBackendDescriptor_t plan, size_t capacity, size_t* size, uint8_t* bytes) {
  const auto host = next<decltype(::hipdnnBackendGetSerializedExecutionPlan_ext)>("hipdnnBackendGetSerializedExecutionPlan_ext");
  const hipdnnStatus_t status = host(plan, 0, size, nullptr);
  if (status != HIPDNN_STATUS_NOT_SUPPORTED) return status;  // no finalized plan
  *size = plan_bytes;
  if (bytes == nullptr) return HIPDNN_STATUS_SUCCESS;
  if (capacity < plan_bytes && !has_fault("capacity")) return HIPDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
  if (!has(state().kept, plan)) state().kept.push_back(plan);
  std::memset(bytes, 1, has_fault("overrun") ? plan_bytes + 1 : plan_bytes);
  return HIPDNN_STATUS_SUCCESS;
}

EXPORT hipdnnStatus_t hipdnnBackendCreateAndDeserializeExecutionPlan_ext(hipdnnHandle_t handle, hipdnnBackendDescriptor_t* plan,
                                                                         const uint8_t* bytes, size_t size) {
  const bool is_taken = size == plan_bytes || (has_fault("half") && size < plan_bytes);
  if (!is_taken || bytes == nullptr || bytes[0] != 1) {
    return next<decltype(::hipdnnBackendCreateAndDeserializeExecutionPlan_ext)>("hipdnnBackendCreateAndDeserializeExecutionPlan_ext")(
        handle, plan, bytes, size);
  }
  *plan = state().kept.back();
  return HIPDNN_STATUS_SUCCESS;
}

}  // extern "C"
