// Eight threads on one device's pools: no block is lent twice at a time, and no stream's work meets another's in one block.
#include <atomic>
#include <cstdio>
#include <thread>

#include "fixture.h"

namespace memory_tests {
namespace {

constexpr int kThreads = 8;
constexpr int kRounds = 400;

template <typename Body>
void run_threads(Body&& body) {
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      try {
        body(id);
      } catch (const std::exception& error) {
        ++failures;
        std::printf("  thread %d: %s\n", id, error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  check::equal(failures.load(), 0, "threads that failed:");
}

void test_blocks_belong_to_one_thread_at_a_time(const Libraries& libraries, const FakeHip&) {
  const auto memory = open_memory(libraries, {.max_cached_bytes = 64 << 10});
  run_threads([&](int id) {
    std::vector<unsigned char*> held;
    for (int round = 0; round < kRounds; ++round) {
      const std::size_t bytes = 512 * static_cast<std::size_t>(1 + (round * 7 + id) % 9);
      auto* block = static_cast<unsigned char*>(memory->device_pool().allocate(bytes));
      std::memset(block, id, 512);
      held.push_back(block);
      if (held.size() < 5) continue;
      for (unsigned char* each : held) {
        check::that(each[0] == id && each[511] == id, "another thread wrote");
        memory->device_pool().release(each);
      }
      held.clear();
    }
    for (unsigned char* each : held) memory->device_pool().release(each);
  });
  check::equal(memory->device_pool().stats().used_bytes, 0u);
  check::equal(memory->device_pool().stats().allocation_count, kThreads * kRounds);
}

/// Each thread's stream carries a value through blocks of the pool, little memory forces blocks to go from stream to stream.
void carry_values(const Libraries& libraries, const FakeHip& fake, bool synchronizes) {
  const auto memory = open_memory(libraries, {.max_cached_bytes = 32 << 10});
  fake.set_capacity(fake.counts().live_bytes + (96 << 10));
  run_threads([&](int id) {
    constexpr std::size_t bytes = 3000;
    const AttachedStream stream(*memory, fake);
    const std::vector<unsigned char> value(bytes, static_cast<unsigned char>(id + 1));
    std::vector<std::vector<unsigned char>> results(static_cast<std::size_t>(kRounds), std::vector<unsigned char>(bytes));
    for (std::vector<unsigned char>& result : results) {
      void* first = memory->device_pool().allocate(bytes, stream.get());
      void* second = memory->device_pool().allocate(bytes, stream.get());
      stream.launch(first, value.data(), bytes);
      stream.launch(second, first, bytes);
      stream.launch(result.data(), second, bytes);
      memory->device_pool().release(first);
      memory->device_pool().release(second);
      if (synchronizes) stream.synchronize();
    }
    stream.synchronize();
    for (const std::vector<unsigned char>& result : results) check::that(result == value, "another stream's value");
  });
  check::equal(memory->device_pool().stats().used_bytes, 0u);
  check::equal(fake.counts().violations, 0u);
}

}  // namespace

void add_concurrency_cases(check::Suite& suite, const Libraries& libraries) {
  suite.add("concurrency: blocks belong to one thread at a time",
            [&libraries] { test_blocks_belong_to_one_thread_at_a_time(libraries, FakeHip(libraries)); });
  suite.add("concurrency: streams that synchronize share little memory",
            [&libraries] { carry_values(libraries, FakeHip(libraries), true); });
  suite.add("concurrency: streams that never synchronize share little memory",
            [&libraries] { carry_values(libraries, FakeHip(libraries), false); });
}

}  // namespace memory_tests
