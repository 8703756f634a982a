#include "time_plan.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include "driver.h"

namespace hipdnn_cuda {
namespace {

constexpr int series = 5, executions = 10;

/// Device memory for the life of the value; null where there is none left.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) {
    if (bind_device() != CUDA_SUCCESS || driver()->mem_alloc(&address_, std::max<std::size_t>(bytes, 1)) != CUDA_SUCCESS) address_ = 0;
    // Small numbers in every type: what a kernel does with zeros may be faster than with data.
    if (address_ != 0) driver()->memset_async(address_, 0x2b, bytes, nullptr);
  }
  Scratch(Scratch&& other) noexcept : address_(std::exchange(other.address_, 0)) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    if (address_ != 0) driver()->mem_free(address_);
  }
  void* get() const { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address_)); }

 private:
  CUdeviceptr address_ = 0;
};

std::size_t extent_bytes(const hipdnn_port::Tensor& tensor) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < tensor.dims.size(); ++i) last += (tensor.dims[i] - 1) * tensor.strides[i];
  return static_cast<std::size_t>(last + 1) * hipdnn_port::element_bytes(tensor.dtype);
}

class Event {
 public:
  Event() { driver()->event_create(&raw_, 0); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { driver()->event_destroy(raw_); }
  CUevent raw() const { return raw_; }

 private:
  CUevent raw_ = nullptr;
};

}  // namespace

CudnnDescriptor variant_pack(const CudnnGraph& graph, void* const* pointers, void* workspace) {
  std::vector<std::int64_t> uids = graph.uids;
  std::vector<void*> all(pointers, pointers + uids.size());
  for (const auto& [uid, bytes] : graph.scalars) {
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

std::optional<double> time_plan(const CudnnDescriptor& plan, std::int64_t workspace_bytes, const CudnnGraph& graph,
                                const hipdnn_port::Graph& described, cudnnHandle_t handle) {
  std::vector<Scratch> memory;
  std::vector<void*> pointers;
  for (const std::int64_t uid : graph.uids) {
    memory.emplace_back(extent_bytes(*std::ranges::find(described.tensors, uid, &hipdnn_port::Tensor::uid)));
    pointers.push_back(memory.back().get());
  }
  const Scratch workspace(static_cast<std::size_t>(workspace_bytes));
  if (workspace.get() == nullptr || std::ranges::find(pointers, nullptr) != pointers.end()) return std::nullopt;
  const CudnnDescriptor pack = variant_pack(graph, pointers.data(), workspace.get());
  // One plan at a time: plans are built on several threads, and what runs beside a plan would be measured with it.
  static std::mutex timing;
  const std::scoped_lock lock(timing);
  const CUstream stream = nullptr;
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) {
      if (cudnn().execute(handle, plan.raw(), pack.raw()) != CUDNN_STATUS_SUCCESS) return false;
    }
    return true;
  };
  if (!run(3)) return std::nullopt;
  std::array<double, series> times{};
  const Event start, stop;
  for (double& time : times) {
    float elapsed_ms = 0;
    driver()->event_record(start.raw(), stream);
    if (!run(executions)) return std::nullopt;
    driver()->event_record(stop.raw(), stream);
    if (driver()->event_synchronize(stop.raw()) != CUDA_SUCCESS) return std::nullopt;
    driver()->event_elapsed_time(&elapsed_ms, start.raw(), stop.raw());
    time = 1e3 * static_cast<double>(elapsed_ms) / executions;
  }
  std::ranges::sort(times);
  return times[series / 2];
}

}  // namespace hipdnn_cuda
