#include "packed_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <mutex>
#include <new>

namespace hipdnn_host {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20U;
/// Address space of a block; only pages that are touched take memory.
constexpr std::size_t kBlockBytes = 16 * kHugePage;

std::size_t rounded_up(std::size_t bytes, std::size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

std::shared_ptr<std::byte> block_of(std::size_t bytes) {
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kHugePage, rounded_up(bytes, kHugePage)));
  if (memory == nullptr) throw std::bad_alloc();
  // A system without huge pages refuses; that costs speed only.
  madvise(memory, rounded_up(bytes, kHugePage), MADV_HUGEPAGE);
  return {memory, [](std::byte* p) { std::free(p); }};
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

}  // namespace hipdnn_host
