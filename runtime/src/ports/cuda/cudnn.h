// cuDNN's backend library, opened at run time, and its descriptors as values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cudnn_backend_abi.h"

namespace hipdnn_cuda {

/// The cuDNN functions this port calls.
struct Cudnn {
  decltype(&::cudnnCreate) create = nullptr;
  decltype(&::cudnnDestroy) destroy = nullptr;
  decltype(&::cudnnSetStream) set_stream = nullptr;
  decltype(&::cudnnGetVersion) get_version = nullptr;
  decltype(&::cudnnGetErrorString) get_error_string = nullptr;
  decltype(&::cudnnGetLastErrorString) get_last_error_string = nullptr;
  decltype(&::cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&::cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&::cudnnBackendFinalize) finalize = nullptr;
  decltype(&::cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&::cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&::cudnnBackendExecute) execute = nullptr;
};

/// The opened library. Throws StatusError (NOT_INITIALIZED) that says what to install. Any thread.
const Cudnn& cudnn();

/// "9.14.0", or "none" where there is no library.
const char* cudnn_version();

/// Throws std::runtime_error with cuDNN's own message where `status` is a failure; `what` names the call.
void check_cudnn(cudnnStatus_t status, std::string_view what);

/// What cuDNN says about the calling thread's last failure.
std::string describe_cudnn(cudnnStatus_t status);

/// One backend descriptor, destroyed with the value. Methods throw as check_cudnn does.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~CudnnDescriptor();

  cudnnBackendDescriptor_t raw() const { return raw_; }
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, const void* data);
  void set_integers(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  void set_integer(cudnnBackendAttributeName_t name, std::int64_t value) { set_integers(name, {&value, 1}); }
  /// A value of an enumeration: a 32-bit int across the ABI.
  void set_enumerator(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int value) { set(name, type, 1, &value); }
  void set_flag(cudnnBackendAttributeName_t name, bool value);
  void set_number(cudnnBackendAttributeName_t name, double value);
  void set_descriptors(cudnnBackendAttributeName_t name, std::span<const cudnnBackendDescriptor_t> values);
  void set_descriptor(cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value) { set_descriptors(name, {&value, 1}); }
  void finalize(std::string_view what);
  /// A failure as a status, for callers that have another way.
  cudnnStatus_t try_finalize();
  std::int64_t integer(cudnnBackendAttributeName_t name) const;

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

}  // namespace hipdnn_cuda
