/* Preloaded library that records who allocates heap memory between two calls: the return address of each allocation. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

enum { kMost = 1 << 16 };

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

static atomic_int recording;
static atomic_size_t count;
static void* callers[kMost];

static void record(void* caller) {
  if (!atomic_load_explicit(&recording, memory_order_relaxed)) return;
  const size_t index = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
  if (index < kMost) callers[index] = caller;
}

void allocations_start(void) {
  atomic_store(&count, 0);
  atomic_store(&recording, 1);
}

/* Returns the number of allocations since the start; the first 65536 callers are in `*addresses`. */
size_t allocations_stop(void*** addresses) {
  atomic_store(&recording, 0);
  *addresses = callers;
  return atomic_load(&count);
}

void* malloc(size_t size) {
  record(__builtin_return_address(0));
  return __libc_malloc(size);
}

void* calloc(size_t items, size_t size) {
  record(__builtin_return_address(0));
  return __libc_calloc(items, size);
}

void* realloc(void* block, size_t size) {
  record(__builtin_return_address(0));
  return __libc_realloc(block, size);
}

void* memalign(size_t alignment, size_t size) {
  record(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  record(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** block, size_t alignment, size_t size) {
  record(__builtin_return_address(0));
  *block = __libc_memalign(alignment, size);
  return *block ? 0 : ENOMEM;
}

/* C++'s operator new, under its mangled names: otherwise the C++ library would be the caller of every one of them. */
void* _Znwm(size_t size) {
  record(__builtin_return_address(0));
  return __libc_malloc(size);
}

void* _Znam(size_t size) {
  record(__builtin_return_address(0));
  return __libc_malloc(size);
}

void* _ZnwmSt11align_val_t(size_t size, size_t alignment) {
  record(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}

void* _ZnamSt11align_val_t(size_t size, size_t alignment) {
  record(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
