#include "execute/constant_memory.h"

#include "device/error.h"

namespace hipdnn_rt {

ConstantMemory::ConstantMemory(const Device& device, std::span<const Tensor> tensors) {
  if (device.port().device_memory_is_host_memory) return;
  const std::size_t alignment = device.port().arena_alignment;
  std::size_t total = 0;
  for (const Tensor& tensor : tensors) {
    const bool is_new = !tensor.empty() && copies_.try_emplace({tensor.data(), tensor.size()}, nullptr).second;
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
  return copy == copies_.end() ? nullptr : copy->second;
}

}  // namespace hipdnn_rt
