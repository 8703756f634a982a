/* AMD's hipDNN of 2025: the host's library, which this one is linked to, with descriptors of neither tensors nor operations. Graphs were bytes. hipDNN's
 * own header needs a build folder: enumerations are ints across the ABI.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#define EXPORT __attribute__((visibility("default")))

enum { NOT_SUPPORTED = 8, ENGINE = 1, PLAN = 4, GRAPH = 10, VARIANT_PACK = 11 };

EXPORT const char* hipdnnVersionString_ext(void) { return "0.0.1"; }

EXPORT int hipdnnBackendCreateDescriptor(int type, void** descriptor) {
  const int is_there = (type >= ENGINE && type <= PLAN) || type == GRAPH || type == VARIANT_PACK;
  int (*next)(int, void**) = (int (*)(int, void**))dlsym(RTLD_NEXT, "hipdnnBackendCreateDescriptor");
  return is_there ? next(type, descriptor) : NOT_SUPPORTED;
}
