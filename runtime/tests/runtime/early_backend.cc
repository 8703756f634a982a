// AMD's hipDNN of 2025 in front of the host library: it exports what is called, and takes graphs as bytes alone, so it has descriptors of neither
// tensors nor operations.
#include <dlfcn.h>

#include "hipdnn_backend.h"

#define EARLY_EXPORT extern "C" __attribute__((visibility("default")))

EARLY_EXPORT const char* hipdnnVersionString_ext(void) { return "0.0.1"; }

EARLY_EXPORT hipdnnStatus_t hipdnnBackendCreateDescriptor(hipdnnBackendDescriptorType_t type, hipdnnBackendDescriptor_t* descriptor) {
  switch (type) {
    case HIPDNN_BACKEND_ENGINE_DESCRIPTOR:
    case HIPDNN_BACKEND_ENGINECFG_DESCRIPTOR:
    case HIPDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
    case HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
    case HIPDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
    case HIPDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return reinterpret_cast<decltype(&::hipdnnBackendCreateDescriptor)>(dlsym(RTLD_NEXT, __func__))(type, descriptor);
    default: return HIPDNN_STATUS_NOT_SUPPORTED;
  }
}
