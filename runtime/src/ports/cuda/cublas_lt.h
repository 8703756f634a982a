// NVIDIA's cuBLASLt, opened at run time, and its objects as values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "cublas_lt_abi.h"

namespace hipdnn_cuda {

/// The functions this port calls.
struct CublasLt {
  decltype(&::cublasLtGetVersion) get_version = nullptr;
  decltype(&::cublasLtGetStatusString) get_status_string = nullptr;
  decltype(&::cublasLtCreate) create = nullptr;
  decltype(&::cublasLtMatmulDescCreate) description_create = nullptr;
  decltype(&::cublasLtMatmulDescDestroy) description_destroy = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) description_set = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&::cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&::cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&::cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) get_heuristic = nullptr;
  decltype(&::cublasLtMatmulAlgoConfigGetAttribute) algorithm_get = nullptr;
  decltype(&::cublasLtMatmul) matmul = nullptr;
};

/// The opened library; null where there is none, and then `cublas_lt_failure` says why. Any thread.
const CublasLt* cublas_lt();
const std::string& cublas_lt_failure();

/// "13.1.0", or "none".
const char* cublas_lt_version();

/// Of the calling thread's device, made when it is first asked for and kept. Requires the library and a current context. Throws as check_cublas_lt.
cublasLtHandle_t cublas_lt_handle();

/// Throws where `status` is a failure: StatusError where memory is short or the device failed, else std::runtime_error; `what` names the call.
void check_cublas_lt(cublasStatus_t status, std::string_view what);

/// One object of the library, destroyed with the value.
template <class Raw, auto Destroy>
class CublasLtObject {
 public:
  CublasLtObject() = default;
  explicit CublasLtObject(Raw raw) : raw_(raw) {}
  CublasLtObject(CublasLtObject&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  CublasLtObject& operator=(CublasLtObject&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~CublasLtObject() {
    if (raw_ != nullptr) (cublas_lt()->*Destroy)(raw_);
  }
  Raw raw() const { return raw_; }

 private:
  Raw raw_ = nullptr;
};

using MatmulDescription = CublasLtObject<cublasLtMatmulDesc_t, &CublasLt::description_destroy>;
using MatrixLayout = CublasLtObject<cublasLtMatrixLayout_t, &CublasLt::layout_destroy>;
using MatmulPreference = CublasLtObject<cublasLtMatmulPreference_t, &CublasLt::preference_destroy>;

}  // namespace hipdnn_cuda
