// Order between kernels on one stream, where cuDNN's do not keep it.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "driver.h"

namespace hipdnn_cuda {

/// Memory of an operand.
struct Extent {
  const std::byte* begin;
  std::size_t bytes;
};

/// cuDNN launches kernels that begin before the one in front of them has ended (programmatic dependent launch), and that wait for it before they
/// read the operands of a convolution or matmul. cuDNN 9.19's engine 4 does not wait before it reads an operand of the epilogue: on an H200 a
/// residual that the kernel in front had just written was read as it was before (bench/gpu/steps.py shows such steps). A plan whose epilogue reads
/// what the last ones on its stream wrote is kept behind them by something on the stream that is no kernel. What was written is remembered for
/// the process: the plan in front may be another program's. Any thread.

/// Call before a plan is queued on a stream of the calling thread's device, for what its epilogue reads. Throws StatusError with the driver's reason.
void before_reading(const Extent& operand, CUstream stream);

/// Call after a plan was queued. All that it writes: positions among its pointers, and bytes.
void after_plan(std::span<const std::pair<std::size_t, std::size_t>> results, void* const* pointers, CUstream stream);

/// Call after a kernel of a module was queued. What it writes is not known, so everything counts as written by it; it has waited for all that is in
/// front of itself.
void after_launch(CUstream stream);

}  // namespace hipdnn_cuda
