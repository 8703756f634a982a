// Who gets a block while work that uses it is still queued. The fake library's streams run as late as the order between them allows, so a
// missing wait shows as wrong data.
#include <array>
#include <numeric>

#include "device/error.h"
#include "fixture.h"

namespace memory_tests {
namespace {

using hipdnn_ep::BlockPool;

constexpr std::size_t kBytes = 4096;
using Data = std::array<unsigned char, kBytes>;

Data filled(unsigned char value) {
  Data data;
  data.fill(value);
  return data;
}

void test_same_stream_reuses_at_once(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries);
  BlockPool& pool = memory->device_pool();
  const Data one = filled(1), two = filled(2);
  Data first{}, second{};
  const AttachedStream stream(*memory, fake);
  const FakeHipCounts before = fake.counts();
  void* block = pool.allocate(kBytes, stream.get());
  stream.launch(block, one.data(), kBytes);
  stream.launch(first.data(), block, kBytes);
  pool.release(block);
  check::equal(pool.allocate(kBytes, stream.get()), block, "the stream's own block,");
  check::equal(fake.counts().event_records, before.event_records, "events");
  check::equal(fake.counts().host_waits, before.host_waits, "waits");
  stream.launch(block, two.data(), kBytes);
  stream.launch(second.data(), block, kBytes);
  check::that(first == Data{}, "nothing has run yet");
  stream.synchronize();
  check::that(first == one && second == two, "the results of both");
}

void test_other_stream_gets_another_block_while_memory_lasts(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries);
  BlockPool& pool = memory->device_pool();
  const Data one = filled(1);
  const AttachedStream a(*memory, fake), b(*memory, fake);
  void* block = pool.allocate(kBytes, a.get());
  a.launch(block, one.data(), kBytes);
  pool.release(block);
  const std::size_t waits = fake.counts().device_waits;
  check::that(pool.allocate(kBytes, b.get()) != block, "no false order between busy streams");
  check::equal(fake.counts().device_waits, waits);
  a.synchronize();
  check::equal(pool.allocate(kBytes, b.get()), block, "a block whose work is done,");
}

void test_block_belongs_to_the_stream_that_had_it_last(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries);
  BlockPool& pool = memory->device_pool();
  const Data one = filled(1);
  Data result{};
  const AttachedStream a(*memory, fake), b(*memory, fake);
  void* block = pool.allocate(kBytes, a.get());
  pool.release(block);
  a.synchronize();
  check::equal(pool.allocate(kBytes, b.get()), block, "done on the first stream,");
  b.launch(block, one.data(), kBytes);
  b.launch(result.data(), block, kBytes);
  pool.release(block);
  check::that(pool.allocate(kBytes, a.get()) != block, "the second stream still works on it");
  check::equal(pool.allocate(kBytes, b.get()), block);
}

void test_other_stream_waits_for_a_block_when_memory_runs_out(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries);
  BlockPool& pool = memory->device_pool();
  const Data one = filled(1), two = filled(2);
  Data result{};
  const AttachedStream a(*memory, fake), b(*memory, fake);
  void* block = pool.allocate(kBytes, a.get());
  fake.set_capacity(fake.counts().live_bytes);
  a.launch(block, one.data(), kBytes);
  a.launch(result.data(), block, kBytes);
  pool.release(block);
  const std::size_t host_waits = fake.counts().host_waits;
  check::equal(pool.allocate(kBytes, b.get()), block, "the only block,");
  check::equal(fake.counts().host_waits, host_waits, "waits of the host");
  b.launch(block, two.data(), kBytes);
  b.synchronize();
  check::that(result == one, "the first stream's work came before");
}

void test_block_without_stream_waits_for_all_streams(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries);
  BlockPool& pool = memory->device_pool();
  const Data one = filled(1);
  Data from_a{}, from_b{};
  const AttachedStream a(*memory, fake), b(*memory, fake);
  void* block = pool.allocate(kBytes);
  fake.set_capacity(fake.counts().live_bytes);
  std::memcpy(block, one.data(), kBytes);
  a.launch(from_a.data(), block, kBytes);
  b.launch(from_b.data(), block, kBytes);
  pool.release(block);
  check::equal(pool.allocate(kBytes), block);
  std::memset(block, 9, kBytes);
  a.synchronize();
  b.synchronize();
  check::that(from_a == one && from_b == one, "both streams read before the host wrote");
}

void test_stream_takes_a_block_without_stream_in_order(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries);
  BlockPool& pool = memory->device_pool();
  const Data one = filled(1), two = filled(2);
  Data from_a{}, from_b{};
  const AttachedStream a(*memory, fake), b(*memory, fake);
  void* block = pool.allocate(kBytes);
  fake.set_capacity(fake.counts().live_bytes);
  std::memcpy(block, one.data(), kBytes);
  a.launch(from_a.data(), block, kBytes);
  b.launch(from_b.data(), block, kBytes);
  pool.release(block);
  const std::size_t host_waits = fake.counts().host_waits;
  check::equal(pool.allocate(kBytes, b.get()), block);
  check::equal(fake.counts().host_waits, host_waits, "waits of the host");
  b.launch(block, two.data(), kBytes);
  b.synchronize();
  a.synchronize();
  check::that(from_a == one && from_b == one, "both streams read before one wrote");
}

void test_blocks_without_stream_come_round_when_nobody_synchronizes(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries);
  BlockPool& pool = memory->device_pool();
  std::vector<Data> results(20);
  const AttachedStream stream(*memory, fake);
  const std::size_t mallocs = fake.counts().mallocs;
  for (unsigned char i = 0; i < 20; ++i) {
    void* block = pool.allocate(kBytes);
    std::memset(block, i, kBytes);
    stream.launch(results[i].data(), block, kBytes);
    pool.release(block);
  }
  check::equal(fake.counts().mallocs - mallocs, 2u, "blocks made");
  stream.synchronize();
  for (unsigned char i = 0; i < 20; ++i) check::that(results[i] == filled(i), "result " + std::to_string(i));
}

void test_synchronized_work_costs_no_further_wait(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries);
  BlockPool& pool = memory->device_pool();
  const Data one = filled(1);
  const AttachedStream stream(*memory, fake);
  void* block = pool.allocate(kBytes);
  stream.launch(block, one.data(), kBytes);
  pool.release(block);
  stream.synchronize();
  const FakeHipCounts before = fake.counts();
  check::equal(pool.allocate(kBytes), block);
  check::equal(fake.counts().host_waits, before.host_waits, "waits");
  check::equal(fake.counts().event_records, before.event_records, "events");
}

void test_memory_in_use_is_freed_after_its_work(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries, {.max_cached_bytes = 0});
  BlockPool& pool = memory->device_pool();
  const Data one = filled(1);
  const AttachedStream stream(*memory, fake);
  const std::size_t frees = fake.counts().frees;
  for (const hipdnn_ep::StreamUser user : {hipdnn_ep::StreamUser(stream.get()), hipdnn_ep::StreamUser()}) {
    void* block = pool.allocate(kBytes, user);
    stream.launch(block, one.data(), kBytes);
    pool.release(block);
  }
  void* weights = pool.reserve(kBytes);
  stream.launch(weights, one.data(), kBytes);
  pool.release(weights);
  check::equal(fake.counts().frees - frees, 3u, "nothing is kept,");
  check::equal(fake.counts().violations, 0u, "freed under way,");
}

void test_trim_waits_for_queued_work(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries);
  BlockPool& pool = memory->device_pool();
  const Data one = filled(1);
  const AttachedStream stream(*memory, fake);
  void* block = pool.allocate(kBytes, stream.get());
  stream.launch(block, one.data(), kBytes);
  pool.release(block);
  pool.trim();
  check::equal(fake.counts().violations, 0u, "freed under way,");
  check::equal(pool.stats().cached_bytes, 0u);
}

void test_blocks_of_a_stream_that_left_are_free_for_all(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries);
  BlockPool& pool = memory->device_pool();
  void* block = nullptr;
  void* outliving = nullptr;
  {
    const AttachedStream stream(*memory, fake);
    block = pool.allocate(kBytes, stream.get());
    outliving = pool.allocate(kBytes, stream.get());
    pool.release(block);
  }
  check::equal(pool.allocate(kBytes), block);
  pool.release(outliving);
  const AttachedStream later(*memory, fake);
  check::equal(pool.allocate(kBytes, later.get()), outliving);
  check::equal(fake.counts().violations, 0u);
}

void test_failed_wait_keeps_the_pool_whole(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries);
  BlockPool& pool = memory->device_pool();
  const AttachedStream a(*memory, fake), b(*memory, fake);
  void* block = pool.allocate(kBytes, a.get());
  fake.set_capacity(fake.counts().live_bytes);
  pool.release(block);
  fake.fail_next("hipStreamWaitEvent");
  check::contains(message_of<hipdnn_rt::DeviceError>([&] { pool.allocate(kBytes, b.get()); }), "hipStreamWaitEvent");
  check::equal(pool.stats().used_bytes + pool.stats().cached_bytes, 0u, "the block nobody knows about is gone,");
  check::that(pool.allocate(kBytes, b.get()) != nullptr, "the next request works");
}

void test_stream_attached_twice_stays_until_both_left(const Libraries& libraries, const FakeHip& fake) {
  const auto memory = open_memory(libraries);
  const AttachedStream stream(*memory, fake);
  memory->streams().attach(stream.get());
  memory->streams().detach(stream.get());
  check::that(memory->streams().contains(stream.get()), "attached once more");
}

}  // namespace

void add_stream_order_cases(check::Suite& suite, const Libraries& libraries) {
  const auto add = [&](const char* name, void (*body)(const Libraries&, const FakeHip&)) {
    suite.add(std::string("stream order: ") + name, [&libraries, body] { body(libraries, FakeHip(libraries)); });
  };
  add("same stream reuses at once", test_same_stream_reuses_at_once);
  add("other stream gets another block while memory lasts", test_other_stream_gets_another_block_while_memory_lasts);
  add("block belongs to the stream that had it last", test_block_belongs_to_the_stream_that_had_it_last);
  add("other stream waits for a block when memory runs out", test_other_stream_waits_for_a_block_when_memory_runs_out);
  add("block without stream waits for all streams", test_block_without_stream_waits_for_all_streams);
  add("stream takes a block without stream in order", test_stream_takes_a_block_without_stream_in_order);
  add("blocks without stream come round when nobody synchronizes", test_blocks_without_stream_come_round_when_nobody_synchronizes);
  add("synchronized work costs no further wait", test_synchronized_work_costs_no_further_wait);
  add("memory in use is freed after its work", test_memory_in_use_is_freed_after_its_work);
  add("trim waits for queued work", test_trim_waits_for_queued_work);
  add("blocks of a stream that left are free for all", test_blocks_of_a_stream_that_left_are_free_for_all);
  add("failed wait keeps the pool whole", test_failed_wait_keeps_the_pool_whole);
  add("stream attached twice stays until both left", test_stream_attached_twice_stays_until_both_left);
}

}  // namespace memory_tests
