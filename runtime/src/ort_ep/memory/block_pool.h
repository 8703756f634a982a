// Memory of one kind, kept after it is let go and lent again: a device's own allocator is too slow to be called in every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "memory/stream_set.h"
#include "plan/device.h"

namespace hipdnn_ep {

/// Counters of a pool, in bytes where not stated. "Used" counts what blocks hold, which is a little more than what was asked for.
struct PoolStats {
  std::int64_t allocation_count = 0;
  std::int64_t reservation_count = 0;
  /// Calls of the source, and blocks given back to it.
  std::int64_t growth_count = 0;
  std::int64_t shrink_count = 0;
  std::size_t used_bytes = 0;
  std::size_t max_used_bytes = 0;
  std::size_t cached_bytes = 0;
  std::size_t max_request_bytes = 0;
};

/// Lends blocks. Safe to share between threads; the lock is never held over a call of the source or a wait on the host.
///
/// Stream order: a block is lent to a stream or, without one, to whoever gets hold of the pointer. What was lent to a stream is at once free
/// for that stream again, since its work comes in order. Others get a block when the work that was queued by the time it came back is known
/// to be done, or are made to wait for it.
class BlockPool {
 public:
  using Memory = std::variant<hipdnn_rt::DeviceBuffer, hipdnn_rt::PinnedBuffer>;
  /// New memory of that many bytes; throws DeviceError where there is none.
  using Source = std::function<Memory(std::size_t bytes)>;

  /// `name` is for messages. No more than `max_cached_bytes` stay cached.
  BlockPool(std::string name, Source source, StreamSet& streams, std::size_t max_cached_bytes);

  /// At least `bytes`, null for 0. Throws DeviceError where there is no memory left even with an empty cache.
  void* allocate(std::size_t bytes, StreamUser user = std::nullopt);
  /// The same for memory that stays for long, such as weights: exactly as much, nothing cached before or after.
  void* reserve(std::size_t bytes);
  /// Take back what `allocate` or `reserve` gave, or null. Work that uses it may still be queued. Throws InputError for any other pointer.
  void release(void* pointer);
  /// Give all cached memory back to the source, waiting for work that uses it.
  void trim();

  PoolStats stats() const;
  std::size_t max_cached_bytes() const { return max_cached_bytes_; }

  /// What `allocate` takes for a request: the waste is at most an eighth, or 255 bytes; a sixteenth from a mebibyte on.
  static std::size_t block_bytes(std::size_t bytes);

 private:
  struct Block {
    Memory memory;
    void* pointer = nullptr;
    std::size_t bytes = 0;
    StreamUser user;
    Tick released = 0;
    bool is_cached = false;
    bool is_reserved = false;
  };
  using BlockNode = std::unordered_map<void*, Block>::node_type;
  /// A cached block that is lent again, and whose work it has to wait for.
  struct Lent {
    void* pointer;
    StreamUser last_user;
    bool must_wait;
  };

  // With the lock held.
  std::optional<std::size_t> find_ready(const std::vector<Block*>& list, StreamUser user) const;
  Lent lend(std::vector<Block*>& list, std::size_t index, std::size_t bytes, StreamUser user, bool must_wait);
  void note_lent(const Block& block, std::size_t bytes);
  Block& oldest_cached();
  BlockNode extract(Block& block);

  // Without it. `size` is a block's, `bytes` what was asked for.
  std::optional<Lent> lend_cached(std::size_t size, std::size_t bytes, StreamUser user, std::size_t max_size, bool accept_waiting);
  void* settle(const Lent& lent, StreamUser user);
  void* grow(std::size_t size, std::size_t bytes, StreamUser user, bool is_reserved);
  void* grow_or_explain(std::size_t size, std::size_t bytes, StreamUser user, bool is_reserved, const std::string& reason);
  void* allocate_under_pressure(std::size_t size, std::size_t bytes, StreamUser user, const std::string& reason);
  /// Give a lent block back to the source, where nothing can be known about the work that uses it.
  void forget(void* pointer);
  /// Give blocks back to the source, when the work that uses them is done.
  void destroy(std::vector<BlockNode> nodes);

  std::string name_;
  Source source_;
  StreamSet& streams_;
  std::size_t max_cached_bytes_;

  mutable std::mutex mutex_;
  std::unordered_map<void*, Block> blocks_;
  /// Cached blocks by size; lists stay when they are empty, so that lending allocates nothing.
  std::map<std::size_t, std::vector<Block*>> idle_;
  PoolStats stats_;
};

}  // namespace hipdnn_ep
