// What a pool lends, keeps and gives back, with no work on any stream.
#include <cstdint>
#include <random>
#include <set>

#include "device/error.h"
#include "fixture.h"

namespace memory_tests {
namespace {

using hipdnn_ep::BlockPool;
using hipdnn_ep::DeviceMemory;

constexpr std::size_t kKilobyte = 1024;

void test_block_sizes_waste_at_most_an_eighth() {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const std::size_t bytes = 1 + (random() >> (24 + random() % 39));
    const std::size_t size = BlockPool::block_bytes(bytes);
    const std::size_t limit = bytes > (1u << 20) ? bytes / 16 : std::max<std::size_t>(255, bytes / 8);
    check::that(size >= bytes && size - bytes <= limit, "size " + std::to_string(size) + " for " + std::to_string(bytes));
    check::equal(size % 256, 0u, "granule");
    check::equal(BlockPool::block_bytes(size), size, "a block's size is its own class,");
  }
  check::equal(BlockPool::block_bytes(0), 0u);
  check::equal(BlockPool::block_bytes(SIZE_MAX), SIZE_MAX, "no overflow,");
}

void test_block_is_lent_again_when_it_came_back(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries);
  BlockPool& pool = memory->device_pool();
  void* first = pool.allocate(100 * kKilobyte);
  void* second = pool.allocate(100 * kKilobyte);
  check::that(first != second && first != nullptr && second != nullptr, "two blocks");
  pool.release(first);
  const std::size_t mallocs = fake.counts().mallocs;
  check::equal(pool.allocate(98 * kKilobyte), first, "nearly the same size,");
  pool.release(second);
  check::that(pool.allocate(10 * kKilobyte) != second, "a small request takes no large block");
  check::equal(fake.counts().mallocs, mallocs + 1, "calls of hipMalloc");
}

void test_steady_state_calls_no_malloc(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries);
  const auto run = [&] {
    std::vector<void*> blocks;
    for (std::size_t i = 1; i <= 20; ++i) blocks.push_back(memory->device_pool().allocate(i * 3333));
    for (void* block : blocks) memory->device_pool().release(block);
  };
  run();
  const std::size_t mallocs = fake.counts().mallocs;
  for (int i = 0; i < 50; ++i) run();
  check::equal(fake.counts().mallocs, mallocs, "calls of hipMalloc");
}

void test_zero_bytes_and_null(const Libraries& libraries) {
  const auto memory = open_memory(libraries);
  check::equal(memory->device_pool().allocate(0), nullptr);
  check::equal(memory->device_pool().reserve(0), nullptr);
  memory->device_pool().release(nullptr);
  check::equal(memory->device_pool().stats().allocation_count, 0);
}

void test_cache_is_bounded_and_drops_the_oldest(const Libraries& libraries, const FakeHip& fake) {
  const std::size_t base = fake.counts().live_bytes;
  const auto memory = open_memory(libraries, {.max_cached_bytes = 256 * kKilobyte});
  BlockPool& pool = memory->device_pool();
  std::vector<void*> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(pool.allocate(64 * kKilobyte));
  void* large = pool.allocate(512 * kKilobyte);
  for (void* block : blocks) pool.release(block);
  check::equal(pool.stats().cached_bytes, 256 * kKilobyte);
  check::equal(fake.counts().live_bytes - base, (256 + 512) * kKilobyte);
  std::set<void*> kept;
  for (int i = 0; i < 4; ++i) kept.insert(pool.allocate(64 * kKilobyte));
  check::equal(kept, std::set<void*>(blocks.begin() + 2, blocks.end()), "the blocks kept,");
  pool.release(large);
  check::equal(fake.counts().live_bytes - base, 256 * kKilobyte, "a block beyond the bound is not kept,");
}

void test_reserved_memory_is_exact_and_not_cached(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries);
  BlockPool& pool = memory->device_pool();
  pool.release(pool.allocate(70001));
  const std::size_t live = fake.counts().live_bytes;
  void* weights = pool.reserve(70001);
  check::equal(fake.counts().live_bytes, live + 70001);
  pool.release(weights);
  check::equal(fake.counts().live_bytes, live);
  check::equal(pool.stats().reservation_count, 1);
  check::equal(pool.stats().allocation_count, 1);
}

void test_stats_follow_what_happens(const Libraries& libraries) {
  const auto memory = open_memory(libraries);
  BlockPool& pool = memory->device_pool();
  void* a = pool.allocate(1000);
  void* b = pool.allocate(5000);
  pool.release(a);
  pool.release(b);
  b = pool.allocate(5000);
  const hipdnn_ep::PoolStats stats = pool.stats();
  check::equal(stats.allocation_count, 3);
  check::equal(stats.growth_count, 2);
  check::equal(stats.used_bytes, BlockPool::block_bytes(5000));
  check::equal(stats.cached_bytes, BlockPool::block_bytes(1000));
  check::equal(stats.max_used_bytes, BlockPool::block_bytes(5000) + BlockPool::block_bytes(1000));
  check::equal(stats.max_request_bytes, 5000u);
  pool.trim();
  check::equal(pool.stats().cached_bytes, 0u);
  check::equal(pool.stats().shrink_count, 1);
}

void test_cache_is_emptied_when_memory_runs_out(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries, {.max_cached_bytes = SIZE_MAX});
  BlockPool& pool = memory->device_pool();
  fake.set_capacity(fake.counts().live_bytes + 1000 * kKilobyte);
  for (void* block : {pool.allocate(300 * kKilobyte), pool.allocate(400 * kKilobyte)}) pool.release(block);
  void* large = pool.allocate(900 * kKilobyte);
  check::that(large != nullptr, "fits once the cache is empty");
  check::equal(pool.stats().cached_bytes, 0u);
  const std::string message = message_of<hipdnn_rt::DeviceError>([&] { pool.allocate(200 * kKilobyte); });
  check::contains(message, "device 0 of port 'hip', device memory: no memory for 204800 bytes");
  check::contains(message, "out of memory");
  pool.release(large);
  check::that(pool.allocate(200 * kKilobyte) != nullptr, "the pool works after a failure");
}

void test_larger_block_serves_when_memory_runs_out(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries, {.max_cached_bytes = SIZE_MAX});
  BlockPool& pool = memory->device_pool();
  void* large = pool.allocate(800 * kKilobyte);
  fake.set_capacity(fake.counts().live_bytes);
  pool.release(large);
  check::equal(pool.allocate(10 * kKilobyte), large);
}

void test_reservation_empties_the_cache_too(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries, {.max_cached_bytes = SIZE_MAX});
  BlockPool& pool = memory->device_pool();
  fake.set_capacity(fake.counts().live_bytes + 100 * kKilobyte);
  pool.release(pool.allocate(90 * kKilobyte));
  check::that(pool.reserve(80 * kKilobyte) != nullptr, "fits once the cache is empty");
  check::contains(message_of<hipdnn_rt::DeviceError>([&] { pool.reserve(80 * kKilobyte); }), "no memory for 81920 bytes");
}

void test_impossible_size_is_refused(const Libraries& libraries) {
  const auto memory = open_memory(libraries);
  message_of<hipdnn_rt::DeviceError>([&] { memory->device_pool().allocate(SIZE_MAX - 4096); });
}

void test_wrong_pointers_are_refused(const Libraries& libraries) {
  const auto memory = open_memory(libraries);
  BlockPool& pool = memory->device_pool();
  void* block = pool.allocate(64);
  pool.release(block);
  check::contains(message_of<hipdnn_rt::InputError>([&] { pool.release(block); }), "freed twice");
  int other = 0;
  check::contains(message_of<hipdnn_rt::InputError>([&] { pool.release(&other); }), "not lent");
  check::equal(pool.stats().cached_bytes, 256u);
}

void test_memory_is_of_its_device_and_kind(const Libraries& libraries, const FakeHip& fake) {
  const auto first = open_memory(libraries);
  const auto second = open_memory(libraries, {}, 1);
  check::equal(fake.device_of(first->device_pool().allocate(64)), 0);
  check::equal(fake.device_of(second->device_pool().allocate(64)), 1);
  check::equal(fake.device_of(second->pinned_pool().allocate(64)), -1);
}

void test_everything_is_freed_with_the_pools(const Libraries& libraries, const FakeHip& fake) {
  const FakeHipCounts before = fake.counts();
  {
    const auto memory = open_memory(libraries);
    memory->device_pool().release(memory->device_pool().allocate(1000));
    memory->pinned_pool().release(memory->pinned_pool().allocate(1000));
    memory->events().give(memory->events().take());
  }
  const FakeHipCounts after = fake.counts();
  check::equal(after.live_bytes, before.live_bytes);
  check::equal(after.live_events, before.live_events);
  check::equal(after.violations, 0u);
}

}  // namespace

void add_pool_cases(check::Suite& suite, const Libraries& libraries) {
  const auto add = [&](const char* name, auto body) {
    suite.add(std::string("pool: ") + name, [&libraries, body] {
      if constexpr (std::is_invocable_v<decltype(body), const Libraries&, const FakeHip&>) {
        body(libraries, FakeHip(libraries));
      } else {
        body(libraries);
      }
    });
  };
  suite.add("pool: block sizes waste at most an eighth", test_block_sizes_waste_at_most_an_eighth);
  add("block is lent again when it came back", test_block_is_lent_again_when_it_came_back);
  add("steady state calls no malloc", test_steady_state_calls_no_malloc);
  add("zero bytes and null", test_zero_bytes_and_null);
  add("cache is bounded and drops the oldest", test_cache_is_bounded_and_drops_the_oldest);
  add("reserved memory is exact and not cached", test_reserved_memory_is_exact_and_not_cached);
  add("stats follow what happens", test_stats_follow_what_happens);
  add("cache is emptied when memory runs out", test_cache_is_emptied_when_memory_runs_out);
  add("larger block serves when memory runs out", test_larger_block_serves_when_memory_runs_out);
  add("reservation empties the cache too", test_reservation_empties_the_cache_too);
  add("impossible size is refused", test_impossible_size_is_refused);
  add("wrong pointers are refused", test_wrong_pointers_are_refused);
  add("memory is of its device and kind", test_memory_is_of_its_device_and_kind);
  add("everything is freed with the pools", test_everything_is_freed_with_the_pools);
}

}  // namespace memory_tests
