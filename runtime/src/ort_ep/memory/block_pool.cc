#include "memory/block_pool.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <utility>

#include "device/error.h"

namespace hipdnn_ep {
namespace {

constexpr std::size_t kGranule = 256;
/// From here on sizes are rounded more finely.
constexpr std::size_t kLargeBytes = std::size_t{1} << 20;
/// A cached block serves requests down to this part of its size.
constexpr std::size_t kMaxExcessDivisor = 4;
/// Blocks without a stream that are still in use come back in turns: with two of a size the older one is waited for instead of allocating a
/// third, or a caller that never waits for its streams would allocate in every run.
constexpr std::size_t kSpareCount = 2;

void* address(const BlockPool::Memory& memory) {
  return std::visit([](const auto& buffer) { return buffer.get(); }, memory);
}

std::string megabytes(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

BlockPool::BlockPool(std::string name, Source source, StreamSet& streams, std::size_t max_cached_bytes)
    : name_(std::move(name)), source_(std::move(source)), streams_(streams), max_cached_bytes_(max_cached_bytes) {}

std::size_t BlockPool::block_bytes(std::size_t bytes) {
  if (bytes == 0) return 0;
  const std::size_t step = std::max(kGranule, std::bit_floor(bytes - (bytes > 1)) >> (bytes > kLargeBytes ? 4 : 3));
  if (bytes > std::numeric_limits<std::size_t>::max() - step) return bytes;
  return (bytes + step - 1) / step * step;
}

void* BlockPool::allocate(std::size_t bytes, StreamUser user) {
  if (bytes == 0) return nullptr;
  const std::size_t size = block_bytes(bytes);
  if (const std::optional<Lent> lent = lend_cached(size, bytes, user, size + size / kMaxExcessDivisor, false)) return settle(*lent, user);
  try {
    return grow(size, bytes, user, false);
  } catch (const hipdnn_rt::DeviceError& error) {
    return allocate_under_pressure(size, bytes, user, error.what());
  }
}

void* BlockPool::reserve(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  try {
    return grow(bytes, bytes, std::nullopt, true);
  } catch (const hipdnn_rt::DeviceError& error) {
    trim();
    return grow_or_explain(bytes, bytes, std::nullopt, true, error.what());
  }
}

void* BlockPool::allocate_under_pressure(std::size_t size, std::size_t bytes, StreamUser user, const std::string& reason) {
  constexpr std::size_t any_size = std::numeric_limits<std::size_t>::max();
  if (const std::optional<Lent> lent = lend_cached(size, bytes, user, any_size, true)) return settle(*lent, user);
  trim();
  return grow_or_explain(size, bytes, user, false, reason);
}

std::optional<BlockPool::Lent> BlockPool::lend_cached(std::size_t size, std::size_t bytes, StreamUser user, std::size_t max_size,
                                                      bool accept_waiting) {
  const std::lock_guard lock(mutex_);
  std::vector<Block*>* oldest_list = nullptr;
  std::size_t oldest = 0;
  std::size_t spare_count = 0;
  for (auto entry = idle_.lower_bound(size); entry != idle_.end() && entry->first <= max_size; ++entry) {
    std::vector<Block*>& list = entry->second;
    if (const std::optional<std::size_t> ready = find_ready(list, user)) return lend(list, *ready, bytes, user, false);
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i]->user) ++spare_count;
      if (list[i]->user && !accept_waiting) continue;
      if (oldest_list != nullptr && list[i]->released >= (*oldest_list)[oldest]->released) continue;
      oldest_list = &list;
      oldest = i;
    }
  }
  if (oldest_list == nullptr || (!accept_waiting && spare_count < kSpareCount)) return std::nullopt;
  return lend(*oldest_list, oldest, bytes, user, true);
}

std::optional<std::size_t> BlockPool::find_ready(const std::vector<Block*>& list, StreamUser user) const {
  // From the end: what came back last is likeliest to be in the caches still. A stream's own blocks need no look at the others.
  for (std::size_t i = list.size(); user && i-- > 0;) {
    if (list[i]->user == user) return i;
  }
  for (std::size_t i = list.size(); i-- > 0;) {
    if (streams_.is_ready(list[i]->user, list[i]->released, user)) return i;
  }
  return std::nullopt;
}

BlockPool::Lent BlockPool::lend(std::vector<Block*>& list, std::size_t index, std::size_t bytes, StreamUser user, bool must_wait) {
  Block& block = *list[index];
  list[index] = list.back();
  list.pop_back();
  stats_.cached_bytes -= block.bytes;
  block.is_cached = false;
  const Lent lent{block.pointer, block.user, must_wait};
  block.user = user;
  note_lent(block, bytes);
  return lent;
}

void* BlockPool::settle(const Lent& lent, StreamUser user) {
  if (!lent.must_wait) return lent.pointer;
  try {
    streams_.wait(lent.last_user, user);
  } catch (...) {
    forget(lent.pointer);
    throw;
  }
  return lent.pointer;
}

void BlockPool::note_lent(const Block& block, std::size_t bytes) {
  ++(block.is_reserved ? stats_.reservation_count : stats_.allocation_count);
  stats_.used_bytes += block.bytes;
  stats_.max_used_bytes = std::max(stats_.max_used_bytes, stats_.used_bytes);
  stats_.max_request_bytes = std::max(stats_.max_request_bytes, bytes);
}

void* BlockPool::grow(std::size_t size, std::size_t bytes, StreamUser user, bool is_reserved) {
  Memory memory = source_(size);
  void* pointer = address(memory);
  const std::lock_guard lock(mutex_);
  Block& block = blocks_[pointer];
  block = {.memory = std::move(memory), .pointer = pointer, .bytes = size, .user = user, .is_reserved = is_reserved};
  ++stats_.growth_count;
  note_lent(block, bytes);
  return pointer;
}

void* BlockPool::grow_or_explain(std::size_t size, std::size_t bytes, StreamUser user, bool is_reserved, const std::string& reason) {
  try {
    return grow(size, bytes, user, is_reserved);
  } catch (const hipdnn_rt::DeviceError&) {
    throw hipdnn_rt::DeviceError(name_ + ": no memory for " + std::to_string(bytes) + " bytes, with " + megabytes(stats().used_bytes) +
                                 " in use and nothing cached: " + reason);
  }
}

void BlockPool::release(void* pointer) {
  if (pointer == nullptr) return;
  std::vector<BlockNode> surplus;
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(pointer);
    if (found == blocks_.end() || found->second.is_cached) {
      throw hipdnn_rt::InputError(name_ + ": a pointer was freed that is not lent: freed twice, or of another allocator");
    }
    Block& block = found->second;
    if (block.is_reserved || block.bytes > max_cached_bytes_) {
      surplus.push_back(extract(block));
    } else {
      idle_[block.bytes].push_back(&block);
      block.is_cached = true;
      block.released = streams_.tick();
      stats_.used_bytes -= block.bytes;
      stats_.cached_bytes += block.bytes;
      while (stats_.cached_bytes > max_cached_bytes_) surplus.push_back(extract(oldest_cached()));
    }
  }
  destroy(std::move(surplus));
}

void BlockPool::forget(void* pointer) {
  std::vector<BlockNode> nodes;
  {
    const std::lock_guard lock(mutex_);
    nodes.push_back(extract(blocks_.at(pointer)));
  }
}

void BlockPool::trim() {
  std::vector<BlockNode> nodes;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [bytes, list] : idle_) {
      while (!list.empty()) nodes.push_back(extract(*list.back()));
    }
  }
  destroy(std::move(nodes));
}

BlockPool::Block& BlockPool::oldest_cached() {
  Block* oldest = nullptr;
  for (const auto& [bytes, list] : idle_) {
    for (Block* block : list) {
      if (oldest == nullptr || block->released < oldest->released) oldest = block;
    }
  }
  return *oldest;
}

BlockPool::BlockNode BlockPool::extract(Block& block) {
  if (block.is_cached) {
    std::erase(idle_.at(block.bytes), &block);
    stats_.cached_bytes -= block.bytes;
  } else {
    block.released = streams_.tick();
    stats_.used_bytes -= block.bytes;
  }
  ++stats_.shrink_count;
  return blocks_.extract(block.pointer);
}

void BlockPool::destroy(std::vector<BlockNode> nodes) {
  for (const BlockNode& node : nodes) {
    const Block& block = node.mapped();
    if (!streams_.is_ready(block.user, block.released, std::nullopt)) streams_.wait(block.user, std::nullopt);
  }
}

PoolStats BlockPool::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace hipdnn_ep
