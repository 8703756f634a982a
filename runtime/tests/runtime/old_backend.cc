// A hipDNN library of an earlier time: most of what the runtime calls is not there yet.
#include "hipdnn_backend.h"

#define OLD_EXPORT __attribute__((visibility("default")))

extern "C" {

OLD_EXPORT hipdnnStatus_t hipdnnCreate(hipdnnHandle_t*) { return HIPDNN_STATUS_NOT_SUPPORTED; }

OLD_EXPORT const char* hipdnnVersionString_ext(void) { return "0.5.0.0"; }

}  // extern "C"
