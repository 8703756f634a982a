#include "allocation_record.h"

#include <execinfo.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>

#include "../check.h"

namespace {

/// Frames looked at of a call stack; those of this file come first.
constexpr int kFrames = 12;
constexpr int kOwnFrames = 2;

/// Addresses of a library.
struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  bool holds(const void* address) const {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    return begin <= number && number < end;
  }
};

struct Record {
  std::atomic<bool> is_on{false};
  std::atomic<int> count{0};
  Range watched, c_library, cpp_library;

  /// Of the callers the first that is neither the C nor the C++ library.
  bool is_of_watched(void* const* frames, int count) const {
    int i = kOwnFrames;
    while (i < count && (c_library.holds(frames[i]) || cpp_library.holds(frames[i]))) ++i;
    return i < count && watched.holds(frames[i]);
  }
};

// Reached from malloc, so constant-initialized and without a destructor.
constinit Record record{};
constinit thread_local bool is_noting = false;

/// Looks who called the caller.
__attribute__((noinline)) void note() {
  if (!record.is_on.load(std::memory_order_acquire) || is_noting) return;
  is_noting = true;
  std::array<void*, kFrames> frames;
  if (record.is_of_watched(frames.data(), backtrace(frames.data(), kFrames))) record.count.fetch_add(1, std::memory_order_relaxed);
  is_noting = false;
}

}  // namespace

// The executable exports these, so that every library of the process binds to them. The C library's own entries lie under them.
#define EXPORTED __attribute__((visibility("default"), noinline))

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

EXPORTED void* malloc(std::size_t bytes) {
  note();
  return __libc_malloc(bytes);
}
EXPORTED void* calloc(std::size_t count, std::size_t bytes) {
  note();
  return __libc_calloc(count, bytes);
}
EXPORTED void* realloc(void* pointer, std::size_t bytes) {
  note();
  return __libc_realloc(pointer, bytes);
}
EXPORTED void* memalign(std::size_t alignment, std::size_t bytes) {
  note();
  return __libc_memalign(alignment, bytes);
}
EXPORTED void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note();
  return __libc_memalign(alignment, bytes);
}
EXPORTED int posix_memalign(void** pointer, std::size_t alignment, std::size_t bytes) {
  note();
  *pointer = __libc_memalign(alignment, bytes);
  return *pointer != nullptr ? 0 : 12;
}
}

EXPORTED void* operator new(std::size_t bytes) {
  note();
  if (void* pointer = __libc_malloc(bytes == 0 ? 1 : bytes)) return pointer;
  throw std::bad_alloc();
}
EXPORTED void operator delete(void* pointer) noexcept { std::free(pointer); }
EXPORTED void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }

namespace ort_tests {
namespace {

struct Search {
  std::string_view name;
  Range found;
};

int look_at(dl_phdr_info* library, std::size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  const std::string_view path = library->dlpi_name;
  if (!path.substr(path.rfind('/') + 1).starts_with(search.name)) return 0;
  search.found = {UINTPTR_MAX, 0};
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
    search.found = {std::min(search.found.begin, begin), std::max(search.found.end, begin + segment.p_memsz)};
  }
  return 1;
}

Range range_of(std::string_view name) {
  Search search{name, {}};
  check::that(dl_iterate_phdr(look_at, &search) == 1, std::string(name) + " is not loaded");
  return search.found;
}

}  // namespace

int count_allocations(std::string_view library, const std::function<void()>& work) {
  // The first call of backtrace loads what it needs.
  std::array<void*, 1> frame{};
  backtrace(frame.data(), 1);
  record.watched = range_of(library);
  record.c_library = range_of("libc.so");
  record.cpp_library = range_of("libstdc++.so");
  record.count = 0;
  record.is_on.store(true, std::memory_order_release);
  work();
  record.is_on = false;
  return record.count;
}

}  // namespace ort_tests
