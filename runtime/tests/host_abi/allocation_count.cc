// Replaces operator new; a library opened at run time binds to these too.
#include "allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace abi {
namespace {

std::atomic<std::size_t>& counter() {
  static std::atomic<std::size_t> count{0};
  return count;
}

}  // namespace

std::size_t allocation_count() { return counter().load(); }

}  // namespace abi

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  abi::counter().fetch_add(1);
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* operator new(std::size_t bytes) {
  if (void* pointer = operator new(bytes, std::nothrow)) return pointer;
  throw std::bad_alloc();
}

void operator delete(void* pointer) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }
void operator delete(void* pointer, const std::nothrow_t&) noexcept { std::free(pointer); }
