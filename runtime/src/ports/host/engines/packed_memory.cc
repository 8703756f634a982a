#include "packed_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <mutex>
#include <new>

namespace hipdnn_port {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20U;
/// Address space of a block; only pages that are touched take memory.
constexpr std::size_t kBlockBytes = 16 * kHugePage;

std::size_t rounded_up(std::size_t bytes, std::size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

/// Straight from the system: a heap would hand out pages that are small already.
std::shared_ptr<std::byte> block_of(std::size_t bytes) {
  const std::size_t reserved = rounded_up(bytes, kHugePage) + kHugePage;
  void* const start = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  // A system without huge pages refuses; that costs speed only.
  madvise(start, reserved, MADV_HUGEPAGE);
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  return {static_cast<std::byte*>(start) + (rounded_up(address, kHugePage) - address), [start, reserved](std::byte*) { munmap(start, reserved); }};
}

/// The block that is being filled. It belongs to the pointers into it.
class Filler {
 public:
  std::shared_ptr<void> take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<std::byte> block = block_.lock();
    if (block == nullptr || used_ + bytes > kBlockBytes) {
      block = block_of(kBlockBytes);
      block_ = block;
      used_ = 0;
    }
    std::byte* const start = block.get() + used_;
    used_ += bytes;
    return {std::move(block), start};
  }

 private:
  std::mutex mutex_;
  std::weak_ptr<std::byte> block_;
  std::size_t used_ = 0;
};

}  // namespace

std::shared_ptr<void> packed_memory(std::size_t bytes) {
  static Filler filler;
  const std::size_t rounded = rounded_up(bytes, kAlignment);
  return rounded > kBlockBytes / 4 ? block_of(rounded) : filler.take(rounded);
}

}  // namespace hipdnn_port
