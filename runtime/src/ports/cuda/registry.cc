// What this library gives to the front of the C API: its name, cuDNN's handle, its engines, and the setting that only it has.
#include <stdexcept>

#include "backend/engine.h"
#include "backend/export.h"
#include "backend/handle.h"
#include "backend/status.h"
#include "choose.h"
#include "cudnn_plan.h"
#include "hipdnn_cuda.h"
#include "translate.h"
#include "vendor_handle.h"

namespace hipdnn_cuda {
namespace {

VendorHandle& handle_of(const hipdnn_port::PlanOptions& options) {
  if (bind_device() != CUDA_SUCCESS) hipdnn_port::fail(HIPDNN_STATUS_EXECUTION_FAILED, "cannot use the device");
  auto& handle = *static_cast<VendorHandle*>(options.vendor_handle.get());
  handle.use(nullptr);
  return handle;
}

/// cuDNN numbers its engines per kind of graph; more of them than any has.
constexpr std::int64_t engine_count = 128;

/// One of cuDNN's engines, under a name as hipDNN's have.
class CudnnEngine final : public hipdnn_port::Engine {
 public:
  explicit CudnnEngine(std::int64_t index) : index_(index), name_("CUDNN_ENGINE_" + std::to_string(index)) {}

  std::string_view name() const override { return name_; }
  std::optional<std::string> refuses(const hipdnn_port::Graph& graph) const override { return why_not_expressible(graph); }
  std::unique_ptr<hipdnn_port::Plan> build(const hipdnn_port::Graph& graph, const hipdnn_port::PlanOptions& options) const override {
    auto configured = std::static_pointer_cast<const Configured>(options.detail);
    if (!configured) configured = configure(graph, handle_of(options), index_);
    return build_cudnn_plan(std::move(configured), options.vendor_handle);
  }
  std::unique_ptr<hipdnn_port::Plan> restore(std::string_view serialized, const hipdnn_port::PlanOptions& options) const override {
    return restore_cudnn_plan(serialized, options.vendor_handle);
  }

 private:
  std::int64_t index_;
  std::string name_;
};

const std::vector<CudnnEngine>& cudnn_engines() {
  static const std::vector<CudnnEngine> all = [] {
    std::vector<CudnnEngine> made;
    for (std::int64_t index = 0; index < engine_count; ++index) made.emplace_back(index);
    return made;
  }();
  return all;
}

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
  static const std::vector<const Engine*> all = [] {
    std::vector<const Engine*> pointers;
    for (const hipdnn_cuda::CudnnEngine& engine : hipdnn_cuda::cudnn_engines()) pointers.push_back(&engine);
    return pointers;
  }();
  return all;
}

std::vector<Proposal> rank(const Graph& graph, const PlanOptions& options, bool find_first, std::string& refusals) {
  if (const auto reason = hipdnn_cuda::why_not_expressible(graph)) {
    refusals = "\n  cuDNN: " + *reason;
    return {};
  }
  std::vector<Proposal> proposals;
  std::string reason;
  try {
    for (auto& configured : hipdnn_cuda::propose(graph, hipdnn_cuda::handle_of(options), reason)) {
      const auto index = static_cast<std::size_t>(configured->engine);
      if (configured->engine < 0 || index >= engines().size()) continue;
      Proposal proposal{engines()[index], {}, configured};
      for (const auto& [knob, value] : configured->knobs) proposal.knobs.emplace_back("CUDNN_KNOB_" + std::to_string(knob), value);
      proposals.push_back(std::move(proposal));
      if (find_first) break;
    }
  } catch (const hipdnn_port::StatusError&) {
    throw;
  } catch (const std::runtime_error& error) {
    reason = error.what();
  }
  if (proposals.empty()) refusals = "\n  cuDNN " + std::string(hipdnn_cuda::cudnn_version()) + ": " + reason;
  return proposals;
}

}  // namespace hipdnn_port

extern "C" {

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnCudaAllowTf32_ext(hipdnnHandle_t handle, int is_allowed) {
  return hipdnn_port::guard(__func__, [&] {
    const auto& vendor = hipdnn_port::require_argument(handle, "handle").state->vendor;
    static_cast<hipdnn_cuda::VendorHandle*>(vendor.get())->allow_tf32(is_allowed != 0);
  });
}

}  // extern "C"
