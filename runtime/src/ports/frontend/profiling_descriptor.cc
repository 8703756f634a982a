// Start, stop, elapsed milliseconds.
#include "profiling_descriptor.h"

#include "handle.h"
#include "names.h"
#include "status.h"

namespace hipdnn_port {
namespace {

void check(hipError_t status, std::string_view call) {
  if (status != hipSuccess) fail(HIPDNN_STATUS_EXECUTION_FAILED, call, ": ", hipGetErrorString(status));
}

}  // namespace

ProfilingDescriptor::Event ProfilingDescriptor::record() const {
  if (!has(HIPDNN_ATTR_PROFILING_HANDLE_EXT)) {
    fail(HIPDNN_STATUS_BAD_PARAM, descriptor_name(type()), ": set ", attribute_name(HIPDNN_ATTR_PROFILING_HANDLE_EXT), " first");
  }
  const auto* handle = static_cast<const hipdnnHandle*>(pointers(HIPDNN_ATTR_PROFILING_HANDLE_EXT).at(0));
  hipEvent_t made = nullptr;
  check(hipEventCreateWithFlags(&made, hipEventDefault), "hipEventCreateWithFlags");
  Event event(made, &hipEventDestroy);
  check(hipEventRecord(event.get(), handle->state->stream), "hipEventRecord");
  return event;
}

void ProfilingDescriptor::on_set(int name) {
  if (name == HIPDNN_ATTR_PROFILING_START_EXT && integer(name) != 0) {
    start_ = record();
    stop_.reset();
  }
  if (name == HIPDNN_ATTR_PROFILING_STOP_EXT && integer(name) != 0) {
    if (!start_) fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(name), ": set ", attribute_name(HIPDNN_ATTR_PROFILING_START_EXT), " first");
    stop_ = record();
  }
}

void ProfilingDescriptor::on_finalize() {
  if (!start_ || !stop_) fail(HIPDNN_STATUS_BAD_PARAM, descriptor_name(type()), ": start and stop must both be set to true, in that order");
  float elapsed_ms = 0;
  check(hipEventSynchronize(stop_.get()), "hipEventSynchronize");
  check(hipEventElapsedTime(&elapsed_ms, start_.get(), stop_.get()), "hipEventElapsedTime");
  store_float(HIPDNN_ATTR_PROFILING_ELAPSED_MS_EXT, elapsed_ms);
}

}  // namespace hipdnn_port
