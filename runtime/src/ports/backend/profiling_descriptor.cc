// Start, stop, elapsed milliseconds.
#include "profiling_descriptor.h"

#include "names.h"
#include "status.h"

namespace hipdnn_port {

void ProfilingDescriptor::on_set(int name) {
  if (name == HIPDNN_ATTR_PROFILING_START_EXT && integer(name) != 0) {
    start_ = Clock::now();
    stop_.reset();
  }
  if (name == HIPDNN_ATTR_PROFILING_STOP_EXT && integer(name) != 0) {
    if (!start_) fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(name), ": set ", attribute_name(HIPDNN_ATTR_PROFILING_START_EXT), " first");
    stop_ = Clock::now();
  }
}

void ProfilingDescriptor::on_finalize() {
  if (!start_ || !stop_) fail(HIPDNN_STATUS_BAD_PARAM, descriptor_name(type()), ": start and stop must both be set to true, in that order");
  store_float(HIPDNN_ATTR_PROFILING_ELAPSED_MS_EXT, std::chrono::duration<float, std::milli>(*stop_ - *start_).count());
}

}  // namespace hipdnn_port
