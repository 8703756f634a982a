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

 private:
  cudnnHandle_t raw_ = nullptr;
  CUstream stream_ = nullptr;
};

}  // namespace hipdnn_cuda
