// The pool of contexts: who gets which, how many there are, and equal results whoever runs.
#include <atomic>
#include <barrier>

#include "cases.h"
#include "device/error.h"
#include "sample_program.h"
#include "session.h"

namespace runtime_tests {
namespace {

using hipdnn_rt::ContextPool;
using hipdnn_rt::LoadedProgram;

/// Arrays of one caller, with the bits that a run alone writes.
struct Caller {
  Caller(ContextPool& pool, const hipdnn_rt::Program& program, std::uint32_t seed)
      : x(random_values(program.inputs().at(0).bytes / sizeof(float), seed)), y(program.outputs().at(0).bytes) {
    run(pool);
    expected = y.values();
  }
  void run(ContextPool& pool) {
    std::fill_n(y.data(), y.values().size(), -1.0F);
    const hipdnn_rt::InputArray in{x.data()};
    const hipdnn_rt::OutputArray out{y.data()};
    pool.run({&in, 1}, {&out, 1});
  }

  Array x, y;
  std::vector<float> expected;
};

void test_equal_bits_when_threads_run_often(const Libraries& libraries) {
  constexpr int threads = 8;
  constexpr int runs = 2000;
  const auto program = two_convolutions(4, 6, false).parse();
  ContextPool pool(LoadedProgram::load(open_host(libraries), program));
  std::vector<Caller> callers;
  for (std::uint32_t t = 0; t < threads; ++t) callers.emplace_back(pool, *program, t);
  check::equal(pool.context_count(), std::size_t{1}, "contexts after runs in turn");
  run_on_threads(threads, [&](int t) {
    Caller& caller = callers[static_cast<std::size_t>(t)];
    for (int i = 0; i < runs; ++i) {
      caller.run(pool);
      check::that(caller.y.values() == caller.expected, "a concurrent run differs from the run alone");
    }
  });
  check::that(pool.context_count() <= threads, "more contexts than runs at once");
}

/// More runs at once than the pool has slots: the rest goes through a list.
void test_equal_bits_when_runs_outnumber_slots(const Libraries& libraries) {
  constexpr int threads = static_cast<int>(ContextPool::kSlots) + 8;
  Sample sample = relu_of_sum({64});
  sample.program["target"] = "hip";
  const auto program = sample.parse();
  const auto device = open_deferred(libraries);
  ContextPool pool(LoadedProgram::load(device, program));
  std::barrier together(threads);
  run_on_threads(threads, [&](int t) {
    const auto a = random_values(64, static_cast<std::uint32_t>(t)), b = random_values(64, static_cast<std::uint32_t>(t) + 100);
    std::vector<float> expected;
    for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(std::max(a[i] + b[i], 0.0F));
    together.arrive_and_wait();
    for (int i = 0; i < 20; ++i) check::that(run_once(pool, *program, {a, b}) == expected, "wrong values");
  });
  check::that(pool.context_count() <= threads, "more contexts than runs at once");
}

void test_context_dropped_when_a_run_fails(const Libraries& libraries) {
  const auto program = relu_of_sum({4}).parse();
  ContextPool pool(LoadedProgram::load(open_host(libraries), program));
  const auto fail = [&] { pool.run({}, {}); };
  for (std::size_t i = 0; i < 2 * ContextPool::kSlots; ++i) check::contains(error_of<hipdnn_rt::InputError>(fail), "inputs: expected 2 arrays");
  check::equal(pool.context_count(), std::size_t{0}, "contexts after failures");
  check::equal(run_once(pool, *program, {{1, -2, 3, -4}, {1, 1, 1, 1}}), std::vector<float>{2, 0, 4, 0});
  check::equal(pool.context_count(), std::size_t{1}, "contexts after a run");
}

}  // namespace

void add_pool_cases(check::Suite& suite, const Libraries& libraries) {
  suite.add("pool: equal bits when threads run often", [=] { test_equal_bits_when_threads_run_often(libraries); });
  suite.add("pool: equal bits when runs outnumber slots", [=] { test_equal_bits_when_runs_outnumber_slots(libraries); });
  suite.add("pool: context dropped when a run fails", [=] { test_context_dropped_when_a_run_fails(libraries); });
}

}  // namespace runtime_tests
