// hipDNN's backend C API: handles, descriptors, execution, errors.
#include <sched.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <thread>

#include "descriptor.h"
#include "export.h"
#include "handle.h"
#include "hipdnn_backend.h"
#include "port_extensions.h"
#include "names.h"
#include "plan_descriptors.h"
#include "status.h"

using namespace hipdnn_port;

namespace hipdnn_port {
namespace {

Descriptor& object_of(hipdnnBackendDescriptor_t descriptor, std::string_view argument) {
  return require_argument(require_argument(descriptor, argument).object.get(), argument);
}

/// The descriptor as a finalized T; `wanted` is T's descriptor type.
template <class T>
const T& finalized(hipdnnBackendDescriptor_t descriptor, hipdnnBackendDescriptorType_t wanted, std::string_view argument) {
  const Descriptor& object = object_of(descriptor, argument);
  if (object.type() != wanted) {
    fail(HIPDNN_STATUS_BAD_PARAM, argument, ": expected ", descriptor_name(wanted), ", got ", descriptor_name(object.type()));
  }
  if (!object.finalized()) fail(HIPDNN_STATUS_BAD_PARAM, argument, ": ", descriptor_name(wanted), " is not finalized");
  return static_cast<const T&>(object);
}

const ExecutionPlanDescriptor& finalized_plan(hipdnnBackendDescriptor_t plan) {
  return finalized<ExecutionPlanDescriptor>(plan, HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "execution plan");
}

int usable_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) return CPU_COUNT(&cpus);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));  // more CPUs than the set can hold
}

}  // namespace

HandleState::HandleState() : threads(usable_cpus()), vendor(make_vendor_handle()) {}

}  // namespace hipdnn_port

extern "C" {

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnCreate(hipdnnHandle_t* handle) {
  return guard(__func__, [&] {
    hipdnnHandle_t& created = require_argument(handle, "handle");
    created = new hipdnnHandle{std::make_shared<HandleState>()};
  });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnDestroy(hipdnnHandle_t handle) {
  return guard(__func__, [&] { delete &require_argument(handle, "handle"); });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnSetStream(hipdnnHandle_t handle, hipStream_t stream) {
  return guard(__func__, [&] { require_argument(handle, "handle").state->stream = stream; });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnGetStream(hipdnnHandle_t handle, hipStream_t* stream) {
  return guard(__func__, [&] { require_argument(stream, "stream") = require_argument(handle, "handle").state->stream; });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnBackendCreateDescriptor(hipdnnBackendDescriptorType_t type, hipdnnBackendDescriptor_t* descriptor) {
  return guard(__func__, [&] {
    hipdnnBackendDescriptor_t& created = require_argument(descriptor, "descriptor");
    created = new hipdnnBackendDescriptor{make_descriptor(type)};
  });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnBackendDestroyDescriptor(hipdnnBackendDescriptor_t descriptor) {
  return guard(__func__, [&] { delete &require_argument(descriptor, "descriptor"); });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnBackendFinalize(hipdnnBackendDescriptor_t descriptor) {
  return guard(__func__, [&] { object_of(descriptor, "descriptor").finalize(); });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnBackendSetAttribute(hipdnnBackendDescriptor_t descriptor, hipdnnBackendAttributeName_t name,
                                                            hipdnnBackendAttributeType_t type, int64_t count, const void* data) {
  return guard(__func__, [&] { object_of(descriptor, "descriptor").set(name, type, count, data); });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnBackendGetAttribute(hipdnnBackendDescriptor_t descriptor, hipdnnBackendAttributeName_t name,
                                                            hipdnnBackendAttributeType_t type, int64_t requested, int64_t* count,
                                                            void* data) {
  return guard(__func__, [&] { object_of(descriptor, "descriptor").get(name, type, requested, count, data); });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnBackendExecute(hipdnnHandle_t handle, hipdnnBackendDescriptor_t plan,
                                                       hipdnnBackendDescriptor_t variant_pack) {
  return guard(__func__, [&] {
    const HandleState& state = *require_argument(handle, "handle").state;
    const ExecutionPlanDescriptor& runnable = finalized_plan(plan);
    const auto& pack = finalized<VariantPackDescriptor>(variant_pack, HIPDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
    runnable.execute(pack, {state.threads.load(std::memory_order_relaxed), state.stream.load(std::memory_order_relaxed), state.vendor.get()});
  });
}

HIPDNN_PORT_EXPORT const char* hipdnnGetErrorString(hipdnnStatus_t status) {
  const std::string_view name = status_name(status);
  return name.empty() ? "unknown hipDNN status" : name.data();
}

HIPDNN_PORT_EXPORT void hipdnnGetLastErrorString(char* message, size_t capacity) {
  if (message != nullptr) copy_last_error({message, capacity}, true);
}

HIPDNN_PORT_EXPORT void hipdnnPeekLastErrorString_ext(char* message, size_t capacity) {
  if (message != nullptr) copy_last_error({message, capacity}, false);
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnPortDescribePlan_ext(hipdnnBackendDescriptor_t plan, char* text, size_t capacity) {
  return guard(__func__, [&] {
    const std::string description = finalized_plan(plan).plan().describe();
    const std::span<char> buffer(&require_argument(text, "text"), capacity);
    if (buffer.empty()) fail(HIPDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "text has no room");
    const std::size_t length = std::min(description.size(), buffer.size() - 1);
    std::copy_n(description.begin(), length, buffer.begin());
    buffer[length] = '\0';
  });
}

}  // extern "C"
