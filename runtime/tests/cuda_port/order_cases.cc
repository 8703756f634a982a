#include "order_cases.h"

#include <array>
#include <cstdint>

#include "kernel_order.h"
#include "stub_driver.h"

namespace {

/// Operands a, b, c of 16 bytes each, beside each other.
std::array<std::byte, 48> memory;
constexpr std::size_t a = 0, b = 1, c = 2;

/// A stream that no other case uses.
CUstream next_stream() {
  static std::uintptr_t last = 0;
  return reinterpret_cast<CUstream>(++last);
}

void plan_writes(std::initializer_list<std::size_t> operands, CUstream stream) {
  std::array<void*, 3> pointers{&memory[0], &memory[16], &memory[32]};
  std::vector<std::pair<std::size_t, std::size_t>> results;
  for (const std::size_t operand : operands) results.emplace_back(operand, 16);
  hipdnn_cuda::after_plan(results, pointers.data(), stream);
}

/// How often something that is no kernel is queued in front of a plan with this residual.
int waits_for(std::size_t operand, CUstream stream) {
  hipdnn_cuda::before_reading({&memory[operand * 16], 16}, stream);
  return stub_driver::take_waits().written_bytes;
}

void test_a_residual_is_waited_for_when_one_of_the_last_two_plans_wrote_it() {
  const CUstream stream = next_stream();
  check::equal(waits_for(a, stream), 0, "nothing ran");
  plan_writes({a}, stream);
  check::equal(waits_for(b, stream), 0, "another operand");
  check::equal(waits_for(a, next_stream()), 0, "another stream");
  check::equal(waits_for(a, stream), 1, "the plan in front wrote it");
  check::equal(waits_for(a, stream), 0, "that has been waited for");
  plan_writes({a}, stream);
  plan_writes({b}, stream);
  check::equal(waits_for(a, stream), 1, "the plan before wrote it");
  plan_writes({a}, stream);
  plan_writes({b}, stream);
  plan_writes({c}, stream);
  check::equal(waits_for(a, stream), 0, "two plans lie between");
}

void test_all_results_of_a_plan_count() {
  const CUstream stream = next_stream();
  plan_writes({a}, stream);
  plan_writes({b, c}, stream);
  check::equal(waits_for(a, stream), 1, "the plan before");
  plan_writes({b, c}, stream);
  check::equal(waits_for(c, stream), 1, "the second result");
}

void test_operands_overlap_by_bytes() {
  const CUstream stream = next_stream();
  plan_writes({b}, stream);
  hipdnn_cuda::before_reading({&memory[0], 16}, stream);
  check::equal(stub_driver::take_waits().written_bytes, 0, "ends where it begins");
  hipdnn_cuda::before_reading({&memory[0], 17}, stream);
  check::equal(stub_driver::take_waits().written_bytes, 1, "one byte");
}

void test_kernels_of_modules_write_anything() {
  const CUstream stream = next_stream();
  hipdnn_cuda::after_launch(stream);
  check::equal(waits_for(a, stream), 1, "in front");
  hipdnn_cuda::after_launch(stream);
  plan_writes({b}, stream);
  check::equal(waits_for(a, stream), 1, "before the plan in front");
  plan_writes({a}, stream);
  hipdnn_cuda::after_launch(stream);
  plan_writes({b}, stream);
  plan_writes({c}, stream);
  check::equal(waits_for(a, stream), 0, "two plans lie between");
}

void test_recorded_streams_get_a_node() {
  const CUstream stream = next_stream();
  stub_driver::record(true);
  plan_writes({a}, stream);
  hipdnn_cuda::before_reading({&memory[0], 16}, stream);
  stub_driver::record(false);
  const stub_driver::Waits waits = stub_driver::take_waits();
  check::equal(waits.empty_nodes, 1, "an empty node");
  check::equal(waits.written_bytes, 0, "nothing else");
}

}  // namespace

void add_order_cases(check::Suite& suite) {
  suite.add("order: residuals of the last two plans", test_a_residual_is_waited_for_when_one_of_the_last_two_plans_wrote_it);
  suite.add("order: all results", test_all_results_of_a_plan_count);
  suite.add("order: bytes", test_operands_overlap_by_bytes);
  suite.add("order: kernels of modules", test_kernels_of_modules_write_anything);
  suite.add("order: recorded streams", test_recorded_streams_get_a_node);
}
