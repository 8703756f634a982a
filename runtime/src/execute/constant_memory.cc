#include "execute/constant_memory.h"

#include "device/error.h"

namespace hipdnn_rt {

ConstantMemory::ConstantMemory(const Device& device, std::span<const Tensor> tensors, std::vector<std::shared_ptr<const ConstantMemory>> others)
    : others_(std::move(others)) {
  if (device.port().device_memory_is_host_memory) return;
  const std::size_t alignment = device.port().arena_alignment;
  std::size_t total = 0;
  for (const Tensor& tensor : tensors) {
    const bool is_new = !tensor.empty() && find(tensor) == nullptr && copies_.try_emplace({tensor.data(), tensor.size()}, nullptr).second;
    if (is_new) total += (tensor.size() + alignment - 1) / alignment * alignment;
  }
  if (total == 0) return;
  memory_ = device.allocate(total);
  const Stream stream = device.create_stream();
  const HipApi& hip = device.library().hip();
  auto* position = static_cast<std::byte*>(memory_.get());
  for (auto& [tensor, copy] : copies_) {
    const auto& [data, bytes] = tensor;
    copy = position;
    check(hip, hip.memcpy_async(position, data, bytes, hipMemcpyHostToDevice, stream.get()), "hipMemcpyAsync(constants)");
    position += (bytes + alignment - 1) / alignment * alignment;
  }
  check(hip, hip.stream_synchronize(stream.get()), "hipStreamSynchronize");
}

void* ConstantMemory::find(Tensor tensor) const {
  const auto copy = copies_.find({tensor.data(), tensor.size()});
  if (copy != copies_.end()) return copy->second;
  for (const auto& other : others_) {
    if (void* const found = other->find(tensor)) return found;
  }
  return nullptr;
}

}  // namespace hipdnn_rt
