// Constants on a device whose memory is not the host's.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "plan/device.h"

namespace hipdnn_rt {

/// Copies of tensors, made once for all specializations of a program. Immutable, safe to use from several threads; belongs to the device it was made
/// for, and outlives every program that was loaded with it.
class ConstantMemory {
 public:
  using Tensor = std::span<const std::byte>;

  /// Upload tensors, each memory once; nothing is done where the device reads the host's memory, and for what `others` of the same device have.
  /// Throws DeviceError.
  ConstantMemory(const Device& device, std::span<const Tensor> tensors, std::vector<std::shared_ptr<const ConstantMemory>> others = {});

  /// Address of the copy of exactly these bytes, null where there is none.
  void* find(Tensor tensor) const;

 private:
  std::vector<std::shared_ptr<const ConstantMemory>> others_;
  DeviceBuffer memory_;
  std::map<std::pair<const std::byte*, std::size_t>, void*> copies_;
};

}  // namespace hipdnn_rt
