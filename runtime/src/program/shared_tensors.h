// Tensors of several programs that have the same bytes.
#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>

#include "program/program.h"

namespace hipdnn_rt {

/// Memory in which others are looked for. It is not owned.
class KnownTensors {
 public:
  void add(std::span<const std::byte> tensor);
  /// Where the same bytes are; empty where they are not, for small tensors, and where they are aligned otherwise.
  std::span<const std::byte> find(std::span<const std::byte> tensor) const;

 private:
  std::unordered_multimap<std::size_t, std::span<const std::byte>> by_size_;
};

/// Let tensors lie where `others` have the same bytes. Returns whether any does now.
bool share_tensors(Tensors& tensors, const Tensors& others);

}  // namespace hipdnn_rt
