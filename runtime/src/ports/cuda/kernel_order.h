// Order between kernels of cuDNN on one stream.
#pragma once

#include <array>
#include <cstddef>

#include "driver.h"

namespace hipdnn_cuda {

/// cuDNN launches kernels that begin before the one in front of them has ended (programmatic dependent launch), and that wait for it before they
/// read the operands of a convolution or product. cuDNN 9.19's engine 4 does not wait before it reads an operand of the epilogue: on an H200 a
/// residual that the kernel in front had just written was read as it was before (bench/gpu/steps.py shows such steps). A plan whose epilogue reads
/// what recent ones wrote is kept behind them by something on the stream that is no kernel. One thread at a time.
class KernelOrder {
 public:
  KernelOrder() = default;
  KernelOrder(const KernelOrder&) = delete;
  KernelOrder& operator=(const KernelOrder&) = delete;
  ~KernelOrder();

  /// Call before a plan is queued on `stream`, for what its epilogue reads. Throws std::runtime_error with the driver's reason.
  void before_reading(const void* operand, CUstream stream);
  /// Call after it, for what it writes.
  void after_writing(const void* result);

 private:
  void wait_for_all(CUstream stream);

  /// By the kernel in front, and by the one before it, should that in front have let the next one begin while it waited itself.
  std::array<const void*, 2> written_{};
  std::size_t next_ = 0;
  /// A byte to write; null until it is needed.
  CUdeviceptr scratch_ = 0;
};

}  // namespace hipdnn_cuda
