// A hipDNN library without the constants extension and without profiling control: two functions refuse them, all others are the host library's,
// found through the dependency on it.
#include <dlfcn.h>

#include "hipdnn_backend.h"

extern "C" __attribute__((visibility("default"))) hipdnnStatus_t hipdnnBackendCreateDescriptor(hipdnnBackendDescriptorType_t type,
                                                                                              hipdnnBackendDescriptor_t* descriptor) {
  static const auto next = reinterpret_cast<decltype(&hipdnnBackendCreateDescriptor)>(dlsym(RTLD_NEXT, "hipdnnBackendCreateDescriptor"));
  if (type == HIPDNN_BACKEND_PROFILING_CONTROL_EXT) return HIPDNN_STATUS_NOT_SUPPORTED;
  return next(type, descriptor);
}

extern "C" __attribute__((visibility("default"))) hipdnnStatus_t hipdnnBackendSetAttribute(hipdnnBackendDescriptor_t descriptor,
                                                                                          hipdnnBackendAttributeName_t name,
                                                                                          hipdnnBackendAttributeType_t type,
                                                                                          int64_t count, const void* data) {
  static const auto next = reinterpret_cast<decltype(&hipdnnBackendSetAttribute)>(dlsym(RTLD_NEXT, "hipdnnBackendSetAttribute"));
  if (static_cast<int>(name) >= HIPDNN_ATTR_EXECUTION_PLAN_CONSTANT_UIDS_MLIR_EXT) return HIPDNN_STATUS_NOT_SUPPORTED;
  return next(descriptor, name, type, count, data);
}
