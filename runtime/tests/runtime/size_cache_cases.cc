// What is kept for combinations of sizes: the least recently used goes, threads that meet make once.
#include "execute/size_cache.h"

#include <array>
#include <atomic>
#include <stdexcept>

#include "cases.h"
#include "session.h"

namespace runtime_tests {
namespace {

using Cache = hipdnn_rt::SizeCache<int>;

std::shared_ptr<int> get(Cache& cache, std::int64_t key) {
  return cache.get(std::array{key}, [&] { return std::make_shared<int>(static_cast<int>(key)); });
}

bool has(Cache& cache, std::int64_t key) { return cache.find(std::array{key}) != nullptr; }

void test_least_recently_used_is_dropped() {
  Cache cache(2);
  const std::shared_ptr<int> first = get(cache, 1);
  get(cache, 2);
  get(cache, 1);
  get(cache, 3);
  check::equal(cache.count(), std::size_t{2});
  check::that(has(cache, 1) && !has(cache, 2) && has(cache, 3), "2 was used least recently");
  get(cache, 4);
  get(cache, 5);
  check::that(!has(cache, 1), "1 has gone");
  check::equal(*first, 1, "what somebody holds");
}

void test_keys_differ_when_one_begins_like_another() {
  Cache cache(8);
  const auto make = [](int value) { return [=] { return std::make_shared<int>(value); }; };
  check::equal(*cache.get(std::array<std::int64_t, 2>{1, 2}, make(12)), 12);
  check::equal(*cache.get(std::array<std::int64_t, 1>{1}, make(1)), 1);
  check::equal(*cache.get(std::array<std::int64_t, 0>{}, make(0)), 0);
  check::equal(*cache.get(std::array<std::int64_t, 2>{1, 2}, make(99)), 12);
}

void test_usable_when_making_has_failed() {
  Cache cache(1);
  const auto fail = []() -> std::shared_ptr<int> { throw std::runtime_error("no"); };
  check::contains(error_of<std::runtime_error>([&] { cache.get(std::array<std::int64_t, 1>{1}, fail); }), "no");
  check::equal(cache.count(), std::size_t{0});
  check::equal(*get(cache, 1), 1);
}

void test_made_once_when_threads_meet() {
  Cache cache(16);
  std::atomic<int> made{0};
  run_on_threads(8, [&](int) {
    for (std::int64_t key = 0; key < 16; ++key) {
      const auto value = cache.get(std::array{key}, [&] {
        ++made;
        return std::make_shared<int>(static_cast<int>(key));
      });
      check::equal(*value, static_cast<int>(key));
    }
  });
  check::equal(made.load(), 16);
}

void test_bound_holds_when_threads_drive_each_other_out() {
  Cache cache(2);
  run_on_threads(8, [&](int thread) {
    for (int i = 0; i < 500; ++i) {
      const std::int64_t key = (i * 7 + thread) % 5;
      check::equal(*get(cache, key), static_cast<int>(key));
      check::that(cache.count() <= 2, "never more than the bound");
    }
  });
}

}  // namespace

void add_size_cache_cases(check::Suite& suite) {
  suite.add("size cache: least recently used is dropped", test_least_recently_used_is_dropped);
  suite.add("size cache: keys differ when one begins like another", test_keys_differ_when_one_begins_like_another);
  suite.add("size cache: usable when making has failed", test_usable_when_making_has_failed);
  suite.add("size cache: made once when threads meet", test_made_once_when_threads_meet);
  suite.add("size cache: bound holds when threads drive each other out", test_bound_holds_when_threads_drive_each_other_out);
}

}  // namespace runtime_tests
