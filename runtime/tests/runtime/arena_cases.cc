// The arena's layout against brute force.
#include <algorithm>
#include <cstdio>
#include <random>

#include "../check.h"
#include "cases.h"
#include "device/error.h"
#include "execute/arena.h"

namespace runtime_tests {
namespace {

using hipdnn_rt::ArenaLayout;
using hipdnn_rt::ArenaRequest;
using hipdnn_rt::plan_arena;

void check_layout(const std::vector<ArenaRequest>& requests, const ArenaLayout& layout, std::uint64_t alignment) {
  std::uint32_t last = 0;
  check::equal(layout.offsets.size(), requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const ArenaRequest& a = requests[i];
    last = std::max(last, a.last);
    if (a.bytes == 0) continue;
    check::equal(layout.offsets[i] % alignment, std::uint64_t{0}, "offset modulo alignment");
    check::that(layout.offsets[i] + a.bytes <= layout.arena_bytes, "a buffer passes the arena's end");
    for (std::size_t j = 0; j < i; ++j) {
      const ArenaRequest& b = requests[j];
      if (b.bytes == 0 || a.first > b.last || b.first > a.last) continue;
      check::that(layout.offsets[i] + a.bytes <= layout.offsets[j] || layout.offsets[j] + b.bytes <= layout.offsets[i],
                  "two buffers alive at one step overlap");
    }
  }
  std::uint64_t largest = 0;
  for (std::uint32_t step = 0; step <= last; ++step) {
    std::uint64_t live = 0;
    for (const ArenaRequest& request : requests) live += request.first <= step && step <= request.last ? request.bytes : 0;
    largest = std::max(largest, live);
  }
  check::equal(layout.largest_live_bytes, largest, "largest live bytes");
  check::that(layout.arena_bytes >= largest, "the arena is smaller than its largest live set");
}

/// Buffers as a network makes them: most die a step or two after their birth, some live long (residuals), a workspace here and there.
std::vector<ArenaRequest> random_requests(std::mt19937& generator, std::size_t count) {
  std::vector<ArenaRequest> requests;
  for (std::uint32_t step = 0; step < count; ++step) {
    const std::uint32_t life = generator() % 4 == 0 ? generator() % 8 : generator() % 2 + 1;
    requests.push_back({generator() % 100'000 + 1, step, step + life});
    if (generator() % 3 == 0) requests.push_back({generator() % 20'000, step, step});
  }
  return requests;
}

void test_no_overlap_when_lifetimes_are_random() {
  std::mt19937 generator(7);
  double worst = 1;
  double sum = 0;
  constexpr int trials = 200;
  for (int trial = 0; trial < trials; ++trial) {
    const std::uint64_t alignment = trial % 2 == 0 ? 64 : 256;
    const auto requests = random_requests(generator, generator() % 80 + 1);
    const ArenaLayout layout = plan_arena(requests, alignment);
    check_layout(requests, layout, alignment);
    const double ratio = static_cast<double>(layout.arena_bytes) / static_cast<double>(layout.largest_live_bytes);
    worst = std::max(worst, ratio);
    sum += ratio;
  }
  std::printf("arena / largest live set over %d random programs: mean %.3f, worst %.3f\n", trials, sum / trials, worst);
  check::that(sum / trials < 1.10, "the mean layout is more than 10% above the bound");
}

void test_bound_reached_when_a_chain_alternates() {
  std::vector<ArenaRequest> requests;
  for (std::uint32_t step = 0; step < 20; ++step) requests.push_back({6400, step, step + 1});
  const ArenaLayout layout = plan_arena(requests, 64);
  check_layout(requests, layout, 64);
  check::equal(layout.arena_bytes, std::uint64_t{12800});
}

void test_nothing_placed_when_all_are_empty() {
  check::equal(plan_arena({}, 64).arena_bytes, std::uint64_t{0});
  const std::vector<ArenaRequest> requests{{0, 0, 5}, {0, 2, 3}};
  check::equal(plan_arena(requests, 64).arena_bytes, std::uint64_t{0});
}

void test_refused_when_sizes_overflow() {
  const std::vector<ArenaRequest> requests{{1ULL << 63, 0, 1}, {1ULL << 63, 2, 3}};
  try {
    plan_arena(requests, 64);
  } catch (const hipdnn_rt::ProgramError& error) {
    check::contains(error.what(), "overflow");
    return;
  }
  check::that(false, "no error");
}

}  // namespace

void add_arena_cases(check::Suite& suite) {
  suite.add("arena: no overlap when lifetimes are random", test_no_overlap_when_lifetimes_are_random);
  suite.add("arena: bound reached when a chain alternates", test_bound_reached_when_a_chain_alternates);
  suite.add("arena: nothing placed when all are empty", test_nothing_placed_when_all_are_empty);
  suite.add("arena: refused when sizes overflow", test_refused_when_sizes_overflow);
}

}  // namespace runtime_tests
