#include "cublas_lt.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <stdexcept>

#include "driver.h"
#include "frontend/status.h"
#include "symbols.h"

namespace hipdnn_cuda {
namespace {

Opened<CublasLt> open_cublas_lt() {
  Opened<CublasLt> opened;
  void* library = nullptr;
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12"}) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    opened.failure = "cannot open libcublasLt.so.13 or .12; install cuBLAS 12 or 13 and put its folder on LD_LIBRARY_PATH";
    return opened;
  }
  std::string missing;
  CublasLt& api = opened.functions;
  load(library, "cublasLtGetVersion", api.get_version, missing);
  load(library, "cublasLtGetStatusString", api.get_status_string, missing);
  load(library, "cublasLtCreate", api.create, missing);
  load(library, "cublasLtMatmulDescCreate", api.description_create, missing);
  load(library, "cublasLtMatmulDescDestroy", api.description_destroy, missing);
  load(library, "cublasLtMatmulDescSetAttribute", api.description_set, missing);
  load(library, "cublasLtMatrixLayoutCreate", api.layout_create, missing);
  load(library, "cublasLtMatrixLayoutDestroy", api.layout_destroy, missing);
  load(library, "cublasLtMatrixLayoutSetAttribute", api.layout_set, missing);
  load(library, "cublasLtMatmulPreferenceCreate", api.preference_create, missing);
  load(library, "cublasLtMatmulPreferenceDestroy", api.preference_destroy, missing);
  load(library, "cublasLtMatmulPreferenceSetAttribute", api.preference_set, missing);
  load(library, "cublasLtMatmulAlgoGetHeuristic", api.get_heuristic, missing);
  load(library, "cublasLtMatmulAlgoConfigGetAttribute", api.algorithm_get, missing);
  load(library, "cublasLtMatmul", api.matmul, missing);
  if (!missing.empty()) {
    opened.failure = "libcublasLt: symbol " + missing + " is missing; install cuBLAS 12 or 13";
    return opened;
  }
  const std::size_t number = api.get_version();
  opened.version = std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." + std::to_string(number % 100);
  return opened;
}

const Opened<CublasLt>& opened_cublas_lt() {
  static const Opened<CublasLt> library = open_cublas_lt();
  return library;
}

}  // namespace

const CublasLt* cublas_lt() { return opened_cublas_lt().failure.empty() ? &opened_cublas_lt().functions : nullptr; }

const std::string& cublas_lt_failure() { return opened_cublas_lt().failure; }

const char* cublas_lt_version() { return opened_cublas_lt().version.c_str(); }

cublasLtHandle_t cublas_lt_handle() {
  static std::mutex guard;
  static std::map<int, cublasLtHandle_t> handles;
  const std::scoped_lock lock(guard);
  cublasLtHandle_t& handle = handles[chosen_device()];
  if (handle == nullptr) check_cublas_lt(cublas_lt()->create(&handle), "cublasLtCreate");
  return handle;
}

void check_cublas_lt(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string message = std::string(what) + ": " + cublas_lt()->get_status_string(status);
  // What is wrong with the machine rather than with the graph has a status of its own.
  if (status == CUBLAS_STATUS_ALLOC_FAILED) hipdnn_port::fail(HIPDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, message);
  if (status == CUBLAS_STATUS_NOT_INITIALIZED || status == CUBLAS_STATUS_MAPPING_ERROR || status == CUBLAS_STATUS_EXECUTION_FAILED ||
      status == CUBLAS_STATUS_INTERNAL_ERROR) {
    hipdnn_port::fail(HIPDNN_STATUS_EXECUTION_FAILED, message);
  }
  throw std::runtime_error(message);
}

}  // namespace hipdnn_cuda
