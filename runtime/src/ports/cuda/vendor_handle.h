// cuDNN's handle behind ours.
#pragma once

#include "cudnn.h"
#include "driver.h"

namespace hipdnn_cuda {

/// One thread at a time, as our handles are.
class VendorHandle {
 public:
  /// Throws StatusError where there is no device or no cuDNN.
  VendorHandle();
  VendorHandle(const VendorHandle&) = delete;
  VendorHandle& operator=(const VendorHandle&) = delete;
  ~VendorHandle();

  cudnnHandle_t raw() const { return raw_; }
  /// Put what follows on `stream`.
  void use(CUstream stream);

  /// Whether matmuls and convolutions of f32 may round their operands to TF32. Set before graphs are planned with the handle.
  bool allows_tf32() const { return allows_tf32_; }
  void allow_tf32(bool is_allowed) { allows_tf32_ = is_allowed; }

 private:
  cudnnHandle_t raw_ = nullptr;
  CUstream stream_ = nullptr;
  bool allows_tf32_ = false;
};

}  // namespace hipdnn_cuda
