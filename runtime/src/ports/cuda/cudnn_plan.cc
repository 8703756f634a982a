#include "cudnn_plan.h"

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "frontend/status.h"
#include "kernel_order.h"

namespace hipdnn_cuda {
namespace {

/// Combinations of pointers whose variant pack is kept: as many as there are likely to be steps of one plan in all contexts.
constexpr std::size_t kept_packs = 256;

/// Baked scalars by uid; plans read the bytes while they run.
using Scalars = std::vector<std::pair<std::int64_t, std::vector<std::byte>>>;

/// What a plan needs once it is built. In the order in which one refers to the other: the last goes first.
struct Parts {
  /// That the plan was made with.
  std::shared_ptr<void> handle;
  /// Null for a plan that was not built from a graph.
  std::shared_ptr<const Configured> configured;
  CudnnDescriptor plan{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR};
  std::int64_t engine = -1;
  std::vector<std::int64_t> uids;
  std::vector<std::pair<std::size_t, std::size_t>> epilogue, results;
  Scalars scalars;
};

VendorHandle& ready(const std::shared_ptr<void>& handle) {
  if (bind_device() != CUDA_SUCCESS) hipdnn_port::fail(HIPDNN_STATUS_EXECUTION_FAILED, "cannot use the device");
  auto& vendor = *static_cast<VendorHandle*>(handle.get());
  vendor.use(nullptr);
  return vendor;
}

class CudnnPlan final : public hipdnn_port::Plan {
 public:
  explicit CudnnPlan(Parts parts) : parts_(std::move(parts)) {
    uids_ = parts_.uids;
    workspace_bytes_ = parts_.plan.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  }

  std::string describe() const override {
    return "cuDNN " + std::string(cudnn_version()) + " engine " + std::to_string(parts_.engine) + (parts_.configured ? "" : ", kept");
  }

  void execute(void* const* pointers, void* workspace, const hipdnn_port::Launch& launch) const override {
    if (const CUresult status = bind_device(); status != CUDA_SUCCESS) hipdnn_port::fail(HIPDNN_STATUS_EXECUTION_FAILED, "cannot use the device");
    auto& handle = *static_cast<VendorHandle*>(launch.vendor_handle);
    const auto stream = reinterpret_cast<CUstream>(launch.stream);
    handle.use(stream);
    cudnnBackendDescriptor_t pack = pack_for(pointers, workspace);
    const auto extent = [&](const std::pair<std::size_t, std::size_t>& operand) {
      return Extent{static_cast<const std::byte*>(pointers[operand.first]), operand.second};
    };
    for (const auto& operand : parts_.epilogue) before_reading(extent(operand), stream);
    check_cudnn(cudnn().execute(handle.raw(), parts_.plan.raw(), pack), "cudnnBackendExecute");
    after_plan(parts_.results, pointers, stream);
  }

  std::string serialize() const override {
    const std::string plan = json();
    if (plan.empty()) return {};
    nlohmann::json all = {{"plan", nlohmann::json::binary({plan.begin(), plan.end()})}, {"engine", parts_.engine}, {"uids", uids_},
                          {"epilogue", parts_.epilogue}, {"results", parts_.results}};
    all["scalars"] = nlohmann::json::array();
    for (const auto& [uid, bytes] : parts_.scalars) {
      std::vector<std::uint8_t> raw;
      for (const std::byte byte : bytes) raw.push_back(static_cast<std::uint8_t>(byte));
      all["scalars"].push_back({uid, nlohmann::json::binary(std::move(raw))});
    }
    const std::vector<std::uint8_t> packed = nlohmann::json::to_cbor(all);
    return {packed.begin(), packed.end()};
  }

 private:
  struct Pack {
    std::vector<void*> pointers;  // the workspace last
    CudnnDescriptor descriptor;
  };

  /// cuDNN's own form of the plan; empty where the engine has none.
  std::string json() const {
    constexpr int attribute = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
    std::int64_t size = 0;
    if (cudnn().get_attribute(parts_.plan.raw(), attribute, CUDNN_TYPE_CHAR, 0, &size, nullptr) != CUDNN_STATUS_SUCCESS || size <= 0) return {};
    std::string text(static_cast<std::size_t>(size), '\0');
    std::int64_t filled = 0;
    if (cudnn().get_attribute(parts_.plan.raw(), attribute, CUDNN_TYPE_CHAR, size, &filled, text.data()) != CUDNN_STATUS_SUCCESS) return {};
    text.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(filled, 0, size)));
    return text;
  }

  CudnnDescriptor variant_pack(void* const* pointers, void* workspace) const {
    std::vector<std::int64_t> uids = parts_.uids;
    std::vector<void*> all(pointers, pointers + uids.size());
    for (const auto& [uid, bytes] : parts_.scalars) {
      uids.push_back(uid);
      all.push_back(const_cast<std::byte*>(bytes.data()));
    }
    CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<std::int64_t>(all.size()), all.data());
    pack.set_integers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids);
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    pack.finalize("the variant pack");
    return pack;
  }

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
    auto made = std::make_unique<Pack>(Pack{std::move(key), variant_pack(pointers, workspace)});
    if (packs_.size() == kept_packs) packs_.pop_back();
    packs_.insert(packs_.begin(), std::move(made));
    return packs_.front()->descriptor.raw();
  }

  Parts parts_;
  mutable std::mutex guard_;
  mutable std::vector<std::unique_ptr<Pack>> packs_;
};

}  // namespace

std::unique_ptr<hipdnn_port::Plan> build_cudnn_plan(std::shared_ptr<const Configured> configured, const std::shared_ptr<void>& handle) {
  Parts parts;
  cudnnHandle_t raw = ready(handle).raw();
  parts.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &raw);
  parts.plan.set_descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configured->configuration.raw());
  parts.plan.finalize("the plan of engine " + std::to_string(configured->engine));
  parts.engine = configured->engine;
  parts.uids = configured->graph->uids;
  parts.epilogue = configured->graph->epilogue;
  parts.results = configured->graph->results;
  parts.scalars = configured->graph->scalars;
  parts.handle = handle;
  parts.configured = std::move(configured);
  return std::make_unique<CudnnPlan>(std::move(parts));
}

std::unique_ptr<hipdnn_port::Plan> restore_cudnn_plan(std::string_view serialized, const std::shared_ptr<void>& handle) {
  Parts parts;
  std::vector<std::uint8_t> json;
  try {
    const nlohmann::json all = nlohmann::json::from_cbor(serialized);
    json = all.at("plan").get_binary();
    parts.engine = all.at("engine").get<std::int64_t>();
    parts.uids = all.at("uids").get<std::vector<std::int64_t>>();
    all.at("epilogue").get_to(parts.epilogue);
    all.at("results").get_to(parts.results);
    const auto is_position = [&](const auto& operand) { return operand.first < parts.uids.size(); };
    if (!std::ranges::all_of(parts.epilogue, is_position) || !std::ranges::all_of(parts.results, is_position)) throw std::runtime_error("it is damaged");
    for (const nlohmann::json& scalar : all.at("scalars")) {
      const auto bytes = std::as_bytes(std::span<const std::uint8_t>(scalar.at(1).get_binary()));
      parts.scalars.emplace_back(scalar.at(0).get<std::int64_t>(), std::vector<std::byte>(bytes.begin(), bytes.end()));
    }
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error("it is damaged");
  }
  cudnnHandle_t raw = ready(handle).raw();
  parts.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &raw);
  parts.plan.set(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(json.size()), json.data());
  parts.plan.finalize("the kept plan of engine " + std::to_string(parts.engine));
  parts.handle = handle;
  return std::make_unique<CudnnPlan>(std::move(parts));
}

}  // namespace hipdnn_cuda
