// Variant packs: the pointers of one execution, and a small cache of them for pointers that change between runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/descriptor.h"

namespace hipdnn_rt {

/// A finalized variant pack: `uids` and `pointers` match; `workspace` may be null.
Descriptor make_variant_pack(const std::shared_ptr<const Library>& library, std::span<const std::int64_t> uids, std::span<void* const> pointers,
                             void* workspace, const std::string& what);

/// The packs a step used last, by the pointers that change between runs. A finalized pack cannot be changed, so each set of pointers
/// needs its own; looking one up allocates nothing. Used by one thread at a time.
class VariantPackCache {
 public:
  /// A caller that takes its arrays from an arena shared by several threads goes through more sets of pointers than it has arrays.
  static constexpr std::size_t kCapacity = 32;

  /// For packs of `pointer_count` pointers that change.
  explicit VariantPackCache(std::size_t pointer_count) : pointer_count_(pointer_count), pointers_(kCapacity * pointer_count) {}

  /// The pack for these pointers, or null.
  const Descriptor* find(std::span<void* const> pointers);
  /// Keep a pack in place of the one least recently used.
  const Descriptor& insert(std::span<void* const> pointers, Descriptor pack);

 private:
  /// More than entries, so that few sets of pointers in use meet in one place.
  static constexpr std::size_t kGuesses = 4 * kCapacity;

  std::span<void*> pointers_of(std::size_t entry) { return std::span(pointers_).subspan(entry * pointer_count_, pointer_count_); }
  bool holds(std::size_t entry, std::span<void* const> pointers);

  std::size_t pointer_count_;
  std::array<Descriptor, kCapacity> packs_;
  /// Those of all entries, one after the other.
  std::vector<void*> pointers_;
  std::array<std::uint64_t, kCapacity> last_use_{};
  /// By a hash of the pointers: the entry that held such a set last. Only a guess; the entry itself decides.
  std::array<std::uint8_t, kGuesses> guess_{};
  std::uint64_t clock_ = 0;
};

}  // namespace hipdnn_rt
