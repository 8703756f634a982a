#include "execute/context_pool.h"

#include <bit>

namespace hipdnn_rt {
namespace {

/// The slot that the calling thread used last in a pool. A hint: what a pool at the same address left behind does no harm.
std::size_t& last_slot(const ContextPool* pool) {
  struct Hint {
    const ContextPool* pool;
    std::size_t slot;
  };
  thread_local std::array<Hint, 64> hints{};
  // Pools lie at least their alignment apart; the product spreads what is left over the upper bits.
  const auto key = reinterpret_cast<std::uintptr_t>(pool) / alignof(ContextPool) * 0x9E37'79B9'7F4A'7C15U;
  Hint& hint = hints[key >> 58];
  if (hint.pool != pool) hint = {pool, 0};
  return hint.slot;
}

}  // namespace

/// A context for one run. It goes back to the pool when the run says so, and is destroyed where an exception comes first.
class ContextPool::Lease {
 public:
  explicit Lease(ContextPool& pool) : pool_(pool) {
    std::size_t& last = last_slot(&pool);
    slot_ = claim(pool.free_, last);
    if (slot_ == kSlots) slot_ = pool.make_in_slot();
    if (slot_ == kSlots) {
      beyond_ = pool.take_beyond_slots();
    } else {
      last = slot_;
    }
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    if (is_returned_) return;
    if (slot_ < kSlots) {
      pool_.slots_[slot_].reset();
      restore(pool_.vacant_, slot_);
    } else {
      const std::lock_guard lock(pool_.beyond_mutex_);
      --pool_.count_beyond_;
    }
  }

  Context& context() const { return slot_ < kSlots ? *pool_.slots_[slot_] : *beyond_; }

  void give_back() {
    if (slot_ < kSlots) {
      restore(pool_.free_, slot_);
    } else {
      const std::lock_guard lock(pool_.beyond_mutex_);
      pool_.free_beyond_.push_back(std::move(beyond_));
    }
    is_returned_ = true;
  }

 private:
  ContextPool& pool_;
  std::size_t slot_ = kSlots;
  std::unique_ptr<Context> beyond_;
  bool is_returned_ = false;
};

void ContextPool::run(std::span<const InputArray> inputs, std::span<const OutputArray> outputs, const std::function<void()>& between) {
  Lease lease(*this);
  lease.context().run(inputs, outputs, between);
  lease.give_back();
}

void ContextPool::enqueue(std::span<const InputArray> inputs, std::span<const OutputArray> outputs, hipStream_t stream) {
  Lease lease(*this);
  lease.context().enqueue(inputs, outputs, stream);
  lease.give_back();
}

TimedRun ContextPool::run_timed(std::span<const InputArray> inputs, std::span<const OutputArray> outputs) {
  Lease lease(*this);
  TimedRun run = lease.context().run_timed(inputs, outputs);
  lease.give_back();
  return run;
}

std::size_t ContextPool::context_count() const {
  const std::lock_guard lock(beyond_mutex_);
  return static_cast<std::size_t>(std::popcount(~vacant_.load(std::memory_order_relaxed))) + count_beyond_;
}

/// Take a slot out of `set`, `preferred` where it is there; answers kSlots where the set is empty.
std::size_t ContextPool::claim(std::atomic<SlotSet>& set, std::size_t preferred) {
  SlotSet seen = set.load(std::memory_order_relaxed);
  while (seen != 0) {
    const bool is_there = (seen >> preferred & 1) != 0;
    const std::size_t slot = is_there ? preferred : static_cast<std::size_t>(std::countr_zero(seen));
    const SlotSet left = seen & ~(SlotSet{1} << slot);
    if (set.compare_exchange_weak(seen, left, std::memory_order_acquire, std::memory_order_relaxed)) return slot;
  }
  return kSlots;
}

void ContextPool::restore(std::atomic<SlotSet>& set, std::size_t slot) { set.fetch_or(SlotSet{1} << slot, std::memory_order_release); }

std::size_t ContextPool::make_in_slot() {
  const std::size_t slot = claim(vacant_, 0);
  if (slot == kSlots) return kSlots;
  try {
    slots_[slot] = std::make_unique<Context>(program_);
  } catch (...) {
    restore(vacant_, slot);
    throw;
  }
  return slot;
}

std::unique_ptr<Context> ContextPool::take_beyond_slots() {
  {
    const std::lock_guard lock(beyond_mutex_);
    if (!free_beyond_.empty()) {
      std::unique_ptr<Context> context = std::move(free_beyond_.back());
      free_beyond_.pop_back();
      return context;
    }
  }
  // Outside the lock: making a context allocates an arena.
  auto context = std::make_unique<Context>(program_);
  const std::lock_guard lock(beyond_mutex_);
  ++count_beyond_;
  return context;
}

}  // namespace hipdnn_rt
