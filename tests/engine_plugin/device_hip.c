/* A libamdhip64 whose device memory the CPU cannot read: its addresses have a bit set that no mapped one has. Copies are counted, and happen when
 * the stream is waited for. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hip_runtime_abi.h"

#define EXPORT __attribute__((visibility("default")))
#define DEVICE_BIT ((uintptr_t)1 << 62)
#define MOST_COPIES 64

static struct {
  void* to;
  const void* from;
  size_t bytes;
  hipStream_t stream;
} copies[MOST_COPIES];
static int count, is_failing;

EXPORT int copies_done;

static void* host(const void* pointer) { return (void*)((uintptr_t)pointer & ~DEVICE_BIT); }

EXPORT void fail_copies(int failing) { is_failing = failing; }

EXPORT hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  if (is_failing || kind != hipMemcpyDefault || count == MOST_COPIES) return hipErrorInvalidValue;
  copies[count].to = host(to);
  copies[count].from = host(from);
  copies[count].bytes = bytes;
  copies[count++].stream = stream;
  return hipSuccess;
}

EXPORT hipError_t hipStreamSynchronize(hipStream_t stream) {
  int left = 0;
  for (int i = 0; i < count; i++) {
    if (copies[i].stream != stream) {
      copies[left++] = copies[i];
      continue;
    }
    memcpy(copies[i].to, copies[i].from, copies[i].bytes);
    copies_done++;
  }
  count = left;
  return hipSuccess;
}
