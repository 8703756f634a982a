// Variant packs: the pointers of one execution, and a small cache of them for pointers that change between runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hipdnn_rt/descriptor.h"

namespace hipdnn_rt {

/// A finalized variant pack: `uids` and `pointers` match; `workspace` may be null.
Descriptor make_variant_pack(const std::shared_ptr<const Library>& library, std::span<const std::int64_t> uids,
                             std::span<void* const> pointers, void* workspace, const std::string& what);

/// The packs a step used last, by the pointers that change between runs. A finalized pack cannot be changed, so each set of pointers
/// needs its own; looking one up allocates nothing. Used by one thread at a time.
class VariantPackCache {
 public:
  static constexpr std::size_t kCapacity = 8;

  /// The pack for these pointers, or null.
  const Descriptor* find(std::span<void* const> pointers);
  /// Keep a pack in place of the one least recently used.
  const Descriptor& insert(std::span<void* const> pointers, Descriptor pack);

 private:
  struct Entry {
    std::vector<void*> pointers;
    Descriptor pack;
    std::uint64_t last_use = 0;
  };

  std::array<Entry, kCapacity> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace hipdnn_rt
