#include "launch_cases.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "hip_runtime_abi.h"
#include "hipdnn_cuda.h"
#include "stub_driver.h"

namespace {

/// Handles that the stub takes without looking.
template <typename Handle>
Handle handle(std::uintptr_t number) {
  return reinterpret_cast<Handle>(number);
}

hipError_t launch(decltype(hipModuleLaunchKernel) function, unsigned int shared_memory_bytes = 0) {
  return function(handle<hipFunction_t>(1), 2, 3, 1, 64, 1, 1, shared_memory_bytes, handle<hipStream_t>(100), nullptr, nullptr);
}

void test_only_kernels_that_wait_begin_while_the_one_in_front_runs() {
  check::equal(launch(hipModuleLaunchKernel), hipSuccess);
  check::equal(launch(hipdnnCudaLaunchWaitingKernel_ext), hipSuccess);
  const std::vector<stub_driver::Launched> launches = stub_driver::take_launches();
  check::equal(launches.size(), std::size_t{2});
  check::that(!launches[0].overlaps, "a kernel that need not wait begins early");
  check::that(launches[1].overlaps, "a kernel that waits itself does not begin early");
  check::that(launches[0].grid_y == 3 && launches[1].grid_y == 3, "sizes of the launch");
}

void test_a_missing_function_is_refused() {
  for (const auto function : {&hipModuleLaunchKernel, &hipdnnCudaLaunchWaitingKernel_ext}) {
    check::equal(function(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), hipErrorInvalidHandle);
  }
  check::equal(stub_driver::take_launches().size(), std::size_t{0});
}

}  // namespace

void add_launch_cases(check::Suite& suite) {
  suite.add("launches: kernels that wait themselves", test_only_kernels_that_wait_begin_while_the_one_in_front_runs);
  suite.add("launches: no function", test_a_missing_function_is_refused);
}
