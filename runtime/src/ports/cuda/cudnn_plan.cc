#include "cudnn_plan.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "choose.h"
#include "time_plan.h"
#include "translate.h"
#include "vendor_handle.h"

namespace hipdnn_cuda {
namespace {

/// Combinations of pointers whose variant pack is kept: as many as contexts are likely to run one plan in.
constexpr std::size_t kept_packs = 8;

class CudnnPlan final : public hipdnn_port::Plan {
 public:
  CudnnPlan(CudnnGraph graph, Chosen chosen, std::shared_ptr<void> handle)
      : handle_(std::move(handle)), graph_(std::move(graph)), chosen_(std::move(chosen)) {
    uids_ = graph_.uids;
    workspace_bytes_ = chosen_.workspace_bytes;
  }

  std::string describe() const override { return "cuDNN " + std::string(cudnn_version()) + " " + chosen_.description; }

  void execute(void* const* pointers, void* workspace, const hipdnn_port::Launch& launch) const override {
    if (const CUresult status = bind_device(); status != CUDA_SUCCESS) throw std::runtime_error("cannot use the device");
    auto& handle = *static_cast<VendorHandle*>(launch.vendor_handle);
    handle.use(reinterpret_cast<CUstream>(launch.stream));
    check_cudnn(cudnn().execute(handle.raw(), chosen_.plan.raw(), pack_for(pointers, workspace)), "cudnnBackendExecute");
  }

 private:
  struct Pack {
    std::vector<void*> pointers;  // the workspace last
    CudnnDescriptor descriptor;
  };

  cudnnBackendDescriptor_t pack_for(void* const* pointers, void* workspace) const {
    const std::scoped_lock lock(guard_);
    const auto is_same = [&](const std::unique_ptr<Pack>& pack) {
      return pack->pointers.back() == workspace && std::equal(pack->pointers.begin(), pack->pointers.end() - 1, pointers);
    };
    const auto found = std::ranges::find_if(packs_, is_same);
    if (found != packs_.end()) {
      std::rotate(packs_.begin(), found, found + 1);  // the last used first
      return packs_.front()->descriptor.raw();
    }
    std::vector<void*> key(pointers, pointers + uids_.size());
    key.push_back(workspace);
    auto made = std::make_unique<Pack>(Pack{std::move(key), variant_pack(graph_, pointers, workspace)});
    if (packs_.size() == kept_packs) packs_.pop_back();
    packs_.insert(packs_.begin(), std::move(made));
    return packs_.front()->descriptor.raw();
  }

  std::shared_ptr<void> handle_;  // a plan refers to the handle that it was made with
  CudnnGraph graph_;
  Chosen chosen_;
  mutable std::mutex guard_;
  mutable std::vector<std::unique_ptr<Pack>> packs_;
};

}  // namespace

std::unique_ptr<hipdnn_port::Plan> build_cudnn_plan(const hipdnn_port::Graph& graph, const hipdnn_port::PlanOptions& options) {
  if (bind_device() != CUDA_SUCCESS) throw std::runtime_error("cannot use the device");
  auto& handle = *static_cast<VendorHandle*>(options.vendor_handle.get());
  handle.use(nullptr);
  CudnnGraph translated = translate(graph, handle.raw());
  Chosen chosen = choose_plan(translated, graph, handle.raw(), Choice::from_environment());
  return std::make_unique<CudnnPlan>(std::move(translated), std::move(chosen), options.vendor_handle);
}

}  // namespace hipdnn_cuda
