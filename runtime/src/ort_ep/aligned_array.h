// Host memory as the runtime takes it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace hipdnn_ep {

/// What the runtime asks of a tensor's pointer, in bytes. ONNX Runtime's own arrays have it; arrays that a caller wraps may not.
inline constexpr std::size_t kAlignment = 16;

struct Freed {
  void operator()(void* pointer) const { std::free(pointer); }
};
using AlignedArray = std::unique_ptr<void, Freed>;

inline bool is_aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % kAlignment == 0; }

inline AlignedArray make_aligned(std::uint64_t bytes) {
  AlignedArray array(std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
  if (!array) throw std::bad_alloc();
  return array;
}

}  // namespace hipdnn_ep
