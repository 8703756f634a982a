// What this library gives to the front of the C API: its name, cuDNN's handle, its engine.
#include <stdexcept>

#include "backend/engine.h"
#include "backend/status.h"
#include "cudnn_plan.h"
#include "translate.h"
#include "vendor_handle.h"

namespace hipdnn_cuda {
namespace {

/// cuDNN as one engine: which of cuDNN's own engines runs a graph is decided when its plan is built.
class CudnnEngine final : public hipdnn_port::Engine {
 public:
  std::string_view name() const override { return "CUDNN_ENGINE"; }
  std::optional<std::string> refuses(const hipdnn_port::Graph& graph) const override { return why_not_expressible(graph); }
  std::unique_ptr<hipdnn_port::Plan> build(const hipdnn_port::Graph& graph, const hipdnn_port::PlanOptions& options) const override {
    return build_cudnn_plan(graph, options);
  }
};

}  // namespace

VendorHandle::VendorHandle() {
  if (driver() == nullptr) hipdnn_port::fail(HIPDNN_STATUS_NOT_INITIALIZED, driver_failure());
  if (bind_device() != CUDA_SUCCESS) hipdnn_port::fail(HIPDNN_STATUS_NOT_INITIALIZED, "no CUDA device can be used; see nvidia-smi");
  if (const cudnnStatus_t status = cudnn().create(&raw_); status != CUDNN_STATUS_SUCCESS) {
    hipdnn_port::fail(HIPDNN_STATUS_NOT_INITIALIZED, "cudnnCreate: ", describe_cudnn(status));
  }
}

VendorHandle::~VendorHandle() {
  if (raw_ != nullptr) cudnn().destroy(raw_);
}

void VendorHandle::use(CUstream stream) {
  if (stream == stream_) return;
  check_cudnn(cudnn().set_stream(raw_, stream), "cudnnSetStream");
  stream_ = stream;
}

}  // namespace hipdnn_cuda

namespace hipdnn_port {

std::string_view library_name() { return "hipdnn_cuda"; }

const char* library_version() {
  static const std::string version = std::string(HIPDNN_CUDA_VERSION) + " (cuDNN " + hipdnn_cuda::cudnn_version() + ")";
  return version.c_str();
}

std::shared_ptr<void> make_vendor_handle() { return std::make_shared<hipdnn_cuda::VendorHandle>(); }

const std::vector<const Engine*>& engines() {
  static const hipdnn_cuda::CudnnEngine cudnn;
  static const std::vector<const Engine*> ranked{&cudnn};
  return ranked;
}

}  // namespace hipdnn_port
