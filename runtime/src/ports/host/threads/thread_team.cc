#include "thread_team.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace hipdnn_port {

namespace {

using Clock = std::chrono::steady_clock;

/// How long a part looks for the others of its region before it sleeps: a few times what waking it costs. Longer would keep a
/// helper that lost its CPU to another process from getting the owner's.
constexpr std::chrono::microseconds kOwnerPatience{60};
/// How long a helper looks for the next region: longer than the single-threaded steps between two regions of a run.
constexpr std::chrono::microseconds kHelperPatience{1000};
constexpr std::size_t kMostNestedRegions = 8;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

/// Looks at `ready` until it holds or patience ends.
template <class Condition>
bool spin_until(const Condition& ready, std::chrono::microseconds patience) {
  constexpr int looks_per_clock = 32;
  const Clock::time_point end = Clock::now() + patience;
  do {
    for (int i = 0; i < looks_per_clock; ++i) {
      if (ready()) return true;
      pause_cpu();
    }
  } while (Clock::now() < end);
  return false;
}

struct Region {
  PartFunction function = nullptr;
  void* data = nullptr;
  int count = 1;
  int next = 1;  ///< first part nobody has taken; guarded by the crew's mutex
  Region* later = nullptr;
  std::atomic<int> unfinished{0};
  std::atomic<int> arrived{0};
  std::atomic<int> barriers{0};
};

/// What a thread is working on: the parts of nested regions, innermost last.
struct Position {
  Region* region = nullptr;
  int part = 0;
};

struct ThreadState {
  std::array<Position, kMostNestedRegions> stack;
  std::size_t depth = 0;
  std::array<Region, kMostNestedRegions> regions;
  int default_parts = 0;
};

ThreadState& state() {
  thread_local ThreadState mine;
  return mine;
}

void run_part(Region& region, int part) {
  ThreadState& mine = state();
  mine.stack[mine.depth++] = {&region, part};
  region.function(region.data);
  --mine.depth;
  // The owner may leave as soon as the count is zero, so this is the last touch of the region but for the address to wake.
  if (region.unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) region.unfinished.notify_one();
}

/// The threads of the process that help regions, and the regions that want help, oldest first. Parts are taken from the oldest
/// region only: at any time all taken parts but those of one region have threads for all their siblings, so barriers end.
class Crew {
 public:
  /// Throws std::system_error, and the region is not offered, where the system gives no more threads: with fewer, parts that wait for each
  /// other would do so for ever, and oneDNN counts on all of them.
  void offer(Region& region) {
    const std::lock_guard lock(mutex_);
    while (threads_.size() + 1 < static_cast<std::size_t>(region.count)) add_thread();
    (last_ ? last_->later : first_) = &region;
    last_ = &region;
    news_.fetch_add(1, std::memory_order_release);
    if (sleeping_ > 0) news_.notify_all();
  }

  /// A part of `region` for its owner, or -1.
  int take_own(Region& region) {
    const std::lock_guard lock(mutex_);
    if (region.next >= region.count) return -1;
    const int part = region.next++;
    if (region.next >= region.count) remove(region);
    return part;
  }

 private:
  /// A thread that has all it needs: what it allocates when it starts is not allocated in the middle of a later run.
  void add_thread() {
    threads_.emplace_back([this] { help(); });
    for (std::size_t started = started_.load(); started < threads_.size(); started = started_.load()) started_.wait(started);
  }

  void help() {
    state().depth = 0;  // written, so that the thread's memory is there
    started_.fetch_add(1);
    started_.notify_one();
    std::uint32_t seen = 0;
    for (;;) {
      const auto [region, part] = take();
      if (region != nullptr) {
        run_part(*region, part);
        continue;
      }
      seen = wait_for_news(seen);
    }
  }

  Position take() {
    const std::lock_guard lock(mutex_);
    if (first_ == nullptr) return {};
    Region& region = *first_;
    const int part = region.next++;
    if (region.next >= region.count) remove(region);
    return {&region, part};
  }

  std::uint32_t wait_for_news(std::uint32_t seen) {
    const auto is_new = [&] { return news_.load(std::memory_order_acquire) != seen; };
    if (!spin_until(is_new, kHelperPatience)) {
      {
        const std::lock_guard lock(mutex_);
        if (is_new()) return news_.load(std::memory_order_relaxed);
        ++sleeping_;
      }
      news_.wait(seen, std::memory_order_acquire);
      const std::lock_guard lock(mutex_);
      --sleeping_;
    }
    return news_.load(std::memory_order_acquire);
  }

  void remove(Region& region) {
    Region* before = nullptr;
    for (Region* r = first_; r != &region; r = r->later) before = r;
    (before ? before->later : first_) = region.later;
    if (last_ == &region) last_ = before;
    region.later = nullptr;
  }

  std::mutex mutex_;
  Region* first_ = nullptr;
  Region* last_ = nullptr;
  int sleeping_ = 0;
  std::atomic<std::uint32_t> news_{0};
  std::atomic<std::size_t> started_{0};
  std::vector<std::thread> threads_;
};

Crew& crew() {
  // Its threads wait for work until the process ends; they must not outlive a destroyed crew, so it is never destroyed.
  static Crew* const everyone = new Crew;
  return *everyone;
}

int cpu_count() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return 1;
  return std::max(CPU_COUNT(&cpus), 1);
}

}  // namespace

void start_region(PartFunction function, void* data, int count) {
  ThreadState& mine = state();
  Region& region = mine.regions[mine.depth];
  region.function = function;
  region.data = data;
  region.count = mine.depth == 0 ? std::max(count, 1) : 1;
  region.next = 1;
  region.arrived.store(0, std::memory_order_relaxed);
  region.unfinished.store(region.count - 1, std::memory_order_relaxed);
  if (region.count > 1) crew().offer(region);
  mine.stack[mine.depth++] = {&region, 0};
}

void finish_region() {
  ThreadState& mine = state();
  Region& region = *mine.stack[--mine.depth].region;
  if (region.count == 1) return;
  for (int part = crew().take_own(region); part > 0; part = crew().take_own(region)) run_part(region, part);
  if (spin_until([&] { return region.unfinished.load(std::memory_order_acquire) == 0; }, kOwnerPatience)) return;
  for (int left = region.unfinished.load(std::memory_order_acquire); left != 0; left = region.unfinished.load(std::memory_order_acquire)) {
    region.unfinished.wait(left, std::memory_order_acquire);
  }
}

void run_region(PartFunction function, void* data, int count) {
  start_region(function, data, count);
  function(data);
  finish_region();
}

int part_number() {
  const ThreadState& mine = state();
  return mine.depth == 0 ? 0 : mine.stack[mine.depth - 1].part;
}

int part_count() {
  const ThreadState& mine = state();
  return mine.depth == 0 ? 1 : mine.stack[mine.depth - 1].region->count;
}

bool in_region() {
  const ThreadState& mine = state();
  return mine.depth > 0 && mine.stack[0].region->count > 1;
}

void team_barrier() {
  const ThreadState& mine = state();
  if (mine.depth == 0) return;
  Region& region = *mine.stack[mine.depth - 1].region;
  if (region.count == 1) return;
  const int barrier = region.barriers.load(std::memory_order_acquire);
  if (region.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == region.count) {
    region.arrived.store(0, std::memory_order_relaxed);
    region.barriers.fetch_add(1, std::memory_order_acq_rel);
    region.barriers.notify_all();
    return;
  }
  const auto passed = [&] { return region.barriers.load(std::memory_order_acquire) != barrier; };
  if (!spin_until(passed, kOwnerPatience)) region.barriers.wait(barrier, std::memory_order_acquire);
}

int default_parts() {
  ThreadState& mine = state();
  if (mine.default_parts == 0) mine.default_parts = cpu_count();
  return mine.default_parts;
}

void set_default_parts(int count) { state().default_parts = std::max(count, 1); }

}  // namespace hipdnn_port
