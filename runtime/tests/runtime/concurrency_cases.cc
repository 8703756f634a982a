// Many runs of one program, and many loads on one device, at the same time.
#include "cases.h"
#include "plan/plan_cache.h"
#include "sample_program.h"
#include "session.h"

namespace runtime_tests {
namespace {

constexpr std::int64_t kChannels = 4;
constexpr std::int64_t kSize = 6;
constexpr std::size_t kImage = kChannels * kSize * kSize;
constexpr int kThreads = 4;
constexpr int kRuns = 30;

void test_same_results_when_runs_are_concurrent(const Libraries& libraries) {
  const auto program = two_convolutions(kChannels, kSize, false).parse();
  hipdnn_rt::ContextPool pool(hipdnn_rt::LoadedProgram::load(open_host(libraries), program));
  std::vector<std::vector<float>> expected;
  for (std::uint32_t t = 0; t < kThreads; ++t) expected.push_back(run_once(pool, *program, {random_values(kImage, t)}));
  check::equal(pool.context_count(), std::size_t{1}, "contexts after runs in turn");
  run_on_threads(kThreads, [&](int t) {
    for (int i = 0; i < kRuns; ++i) {
      const auto got = run_once(pool, *program, {random_values(kImage, static_cast<std::uint32_t>(t))});
      check::that(got == expected[static_cast<std::size_t>(t)], "a concurrent run differs from the run alone");
    }
  });
  check::that(pool.context_count() <= kThreads, "more contexts than concurrent runs");
}

void test_one_plan_when_loads_are_concurrent(const Libraries& libraries) {
  const auto device = open_host(libraries);
  std::vector<std::shared_ptr<const hipdnn_rt::LoadedProgram>> loaded(kThreads);
  run_on_threads(kThreads, [&](int t) {
    loaded[static_cast<std::size_t>(t)] = hipdnn_rt::LoadedProgram::load(device, relu_of_sum({3, 7}).parse());
  });
  check::equal(device->plans().size(), std::size_t{2});
  for (const auto& program : loaded) check::that(program->plan(0) == loaded[0]->plan(0), "loads of one graph must share its plan");
}

void test_same_results_when_plans_are_built_on_threads(const Libraries& libraries) {
  const auto program = two_convolutions(kChannels, kSize, false).parse();
  const auto x = random_values(kImage, 3);
  hipdnn_rt::Context alone(hipdnn_rt::LoadedProgram::load(open_host(libraries, 1), program));
  hipdnn_rt::Context together(hipdnn_rt::LoadedProgram::load(open_host(libraries, 2), program));
  const auto expected = run_once(alone, *program, {x});
  const auto got = run_once(together, *program, {x});
  for (std::size_t i = 0; i < got.size(); ++i) check::near(static_cast<double>(got[i]), static_cast<double>(expected[i]), 1e-4);
}

}  // namespace

void add_concurrency_cases(check::Suite& suite, const Libraries& libraries) {
  suite.add("concurrency: same results when runs are concurrent", [=] { test_same_results_when_runs_are_concurrent(libraries); });
  suite.add("concurrency: same results when plans are built on threads", [=] { test_same_results_when_plans_are_built_on_threads(libraries); });
  suite.add("concurrency: one plan when loads are concurrent", [=] { test_one_plan_when_loads_are_concurrent(libraries); });
}

}  // namespace runtime_tests
