#include "program/shared_tensors.h"

#include <cstdint>
#include <cstring>
#include <unordered_map>

namespace hipdnn_rt {
namespace {

/// What is smaller is not worth the search.
constexpr std::size_t kSmallBytes = 65536;
/// No element needs more.
constexpr std::uintptr_t kAlignment = 16;

std::uintptr_t offset_of(std::span<const std::byte> tensor) { return reinterpret_cast<std::uintptr_t>(tensor.data()) % kAlignment; }

}  // namespace

bool share_tensors(Tensors& tensors, const Tensors& others) {
  std::unordered_multimap<std::size_t, std::span<const std::byte>> by_size;
  for (const auto& [name, tensor] : others) {
    if (tensor.size() >= kSmallBytes) by_size.emplace(tensor.size(), tensor);
  }
  bool is_any = false;
  for (auto& [name, tensor] : tensors) {
    const auto [begin, end] = by_size.equal_range(tensor.size());
    for (auto other = begin; other != end; ++other) {
      const std::span<const std::byte> found = other->second;
      // Different weights differ in their first bytes, so this reads twice what becomes one, and little else.
      if (offset_of(found) != offset_of(tensor) || std::memcmp(found.data(), tensor.data(), tensor.size()) != 0) continue;
      tensor = found;
      is_any = true;
      break;
    }
  }
  return is_any;
}

}  // namespace hipdnn_rt
