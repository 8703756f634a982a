// What this library gives to the front of the C API: its name, cuDNN's handle, its engines, and the setting that only it has.
#include <algorithm>
#include <stdexcept>

#include "choose.h"
#include "cublas_lt.h"
#include "cudnn_plan.h"
#include "frontend/engine.h"
#include "frontend/export.h"
#include "frontend/handle.h"
#include "frontend/status.h"
#include "hipdnn_cuda.h"
#include "matmul.h"
#include "matmul_plan.h"
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

/// The first that cuBLASLt proposes are not always the fastest.
constexpr int most_matmul_algorithms = 8;

/// cuBLASLt, as hipDNN has hipBLASLt.
class CublasLtEngine final : public hipdnn_port::Engine {
 public:
  std::string_view name() const override { return "CUBLASLT_ENGINE"; }
  std::optional<std::string> refuses(const hipdnn_port::Graph& graph) const override {
    std::string reason;
    return as_matmul(graph, reason) ? std::nullopt : std::optional(reason);
  }
  std::unique_ptr<hipdnn_port::Plan> build(const hipdnn_port::Graph& graph, const hipdnn_port::PlanOptions& options) const override {
    auto configured = std::static_pointer_cast<const ConfiguredMatmul>(options.detail);
    if (!configured) {
      const auto proposals = configure(graph, options, 1);
      if (proposals.empty()) throw std::runtime_error("it has no algorithm");
      configured = proposals.front();
    }
    return build_matmul_plan(std::move(configured));
  }

  /// Throws std::runtime_error where the graph is no matmul, or there is no library.
  static std::vector<std::shared_ptr<const ConfiguredMatmul>> configure(const hipdnn_port::Graph& graph, const hipdnn_port::PlanOptions& options,
                                                                        int most) {
    std::string reason;
    const std::optional<Matmul> matmul = as_matmul(graph, reason);
    if (!matmul) throw std::runtime_error(reason);
    return propose_matmuls(*matmul, handle_of(options), most);
  }
};

const CublasLtEngine& cublas_lt_engine() {
  static const CublasLtEngine engine;
  return engine;
}

const std::vector<CudnnEngine>& cudnn_engines() {
  static const std::vector<CudnnEngine> all = [] {
    std::vector<CudnnEngine> made;
    for (std::int64_t index = 0; index < engine_count; ++index) made.emplace_back(index);
    return made;
  }();
  return all;
}

/// Adds what cuBLASLt proposes; answers why it proposes nothing.
std::string rank_matmuls(const hipdnn_port::Graph& graph, const hipdnn_port::PlanOptions& options,
                          std::vector<hipdnn_port::Proposal>& proposals) {
  try {
    for (auto& configured : CublasLtEngine::configure(graph, options, most_matmul_algorithms)) {
      hipdnn_port::Proposal proposal{&cublas_lt_engine(), {}, configured};
      for (const auto& [knob, value] : configured->knobs) proposal.knobs.emplace_back("CUBLASLT_" + knob, value);
      proposals.push_back(std::move(proposal));
    }
  } catch (const hipdnn_port::StatusError&) {
    throw;
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "it has no algorithm";
}

/// The graph with f32 in the place of 16-bit types inside; nothing where there are none.
std::optional<hipdnn_port::Graph> with_wide_intermediates(const hipdnn_port::Graph& graph) {
  hipdnn_port::Graph wide = graph;
  bool is_other = false;
  for (hipdnn_port::Tensor& tensor : wide.tensors) {
    if (!tensor.is_virtual || (tensor.dtype != HIPDNN_DATA_HALF && tensor.dtype != HIPDNN_DATA_BFLOAT16)) continue;
    tensor.dtype = HIPDNN_DATA_FLOAT;
    is_other = true;
  }
  return is_other ? std::optional(std::move(wide)) : std::nullopt;
}

/// Adds what cuDNN proposes; answers why it proposes nothing.
std::string rank_fusions(const hipdnn_port::Graph& graph, const hipdnn_port::PlanOptions& options,
                         std::vector<hipdnn_port::Proposal>& proposals) {
  if (auto reason = why_not_expressible(graph)) return *reason;
  std::string reason;
  try {
    for (auto& configured : propose(graph, handle_of(options), reason)) {
      if (configured->engine < 0 || configured->engine >= engine_count) continue;
      hipdnn_port::Proposal proposal{&cudnn_engines()[static_cast<std::size_t>(configured->engine)], {}, configured};
      for (const auto& [knob, value] : configured->knobs) proposal.knobs.emplace_back("CUDNN_KNOB_" + std::to_string(knob), value);
      proposals.push_back(std::move(proposal));
    }
  } catch (const hipdnn_port::StatusError&) {
    throw;
  } catch (const std::runtime_error& error) {
    reason = error.what();
  }
  return reason;
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
  static const std::string version = std::string(HIPDNN_CUDA_VERSION) + " (cuDNN " + hipdnn_cuda::cudnn_version() + ", cuBLASLt " +
                                     hipdnn_cuda::cublas_lt_version() + ")";
  return version.c_str();
}

bool uses_constants() { return false; }

std::shared_ptr<void> make_vendor_handle() { return std::make_shared<hipdnn_cuda::VendorHandle>(); }

const std::vector<const Engine*>& engines() {
  static const std::vector<const Engine*> all = [] {
    std::vector<const Engine*> pointers;
    for (const hipdnn_cuda::CudnnEngine& engine : hipdnn_cuda::cudnn_engines()) pointers.push_back(&engine);
    pointers.push_back(&hipdnn_cuda::cublas_lt_engine());
    return pointers;
  }();
  return all;
}

std::vector<Proposal> rank(const Graph& graph, const PlanOptions& options, std::string& refusals) {
  std::vector<Proposal> matmuls, fusions;
  const std::string no_matmul = hipdnn_cuda::rank_matmuls(graph, options, matmuls);
  const std::string no_fusion = hipdnn_cuda::rank_fusions(graph, options, fusions);
  // Engines that round nothing inside take more channel counts; where both kinds do, those that round are a few percent faster (ResNet-50).
  if (fusions.empty()) {
    if (const auto wide = hipdnn_cuda::with_wide_intermediates(graph)) hipdnn_cuda::rank_fusions(*wide, options, fusions);
  }
  // In turns: plans that are timed are the first of all that are proposed.
  std::vector<Proposal> proposals;
  for (std::size_t i = 0; i < std::max(matmuls.size(), fusions.size()); ++i) {
    for (auto* some : {&matmuls, &fusions}) {
      if (i < some->size()) proposals.push_back(std::move((*some)[i]));
    }
  }
  if (proposals.empty()) {
    refusals = "\n  cuDNN " + std::string(hipdnn_cuda::cudnn_version()) + ": " + no_fusion + "\n  cuBLASLt " +
               std::string(hipdnn_cuda::cublas_lt_version()) + ": " + no_matmul;
  }
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
