#include "plan/variant_pack.h"

#include <algorithm>

namespace hipdnn_rt {
namespace {

/// The upper bits of products depend on all bits of the factors; addresses differ in their middle ones.
std::uint64_t hash(std::span<void* const> pointers) {
  std::uint64_t value = 0;
  for (void* const pointer : pointers) value = (value ^ reinterpret_cast<std::uintptr_t>(pointer)) * 0x9E37'79B9'7F4A'7C15U;
  return value >> 32;
}

}  // namespace

Descriptor make_variant_pack(const std::shared_ptr<const Library>& library, std::span<const std::int64_t> uids, std::span<void* const> pointers,
                             void* workspace, const std::string& what) {
  Descriptor pack(library, HIPDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const auto count = static_cast<std::int64_t>(uids.size());
  pack.set(HIPDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, HIPDNN_TYPE_INT64, count, uids.data(), what);
  pack.set(HIPDNN_ATTR_VARIANT_PACK_DATA_POINTERS, HIPDNN_TYPE_VOID_PTR, count, pointers.data(), what);
  pack.set(HIPDNN_ATTR_VARIANT_PACK_WORKSPACE, HIPDNN_TYPE_VOID_PTR, 1, &workspace, what);
  pack.finalize(what);
  return pack;
}

const Descriptor* VariantPackCache::find(std::span<void* const> pointers) {
  std::uint8_t& guess = guess_[hash(pointers) % kGuesses];
  if (!holds(guess, pointers)) {
    std::size_t entry = 0;
    while (entry < kCapacity && !holds(entry, pointers)) ++entry;
    if (entry == kCapacity) return nullptr;
    guess = static_cast<std::uint8_t>(entry);
  }
  last_use_[guess] = ++clock_;
  return &packs_[guess];
}

bool VariantPackCache::holds(std::size_t entry, std::span<void* const> pointers) {
  return packs_[entry] && std::ranges::equal(pointers, pointers_of(entry));
}

const Descriptor& VariantPackCache::insert(std::span<void* const> pointers, Descriptor pack) {
  const auto entry = static_cast<std::size_t>(std::ranges::min_element(last_use_) - last_use_.begin());
  std::ranges::copy(pointers, pointers_of(entry).begin());
  packs_[entry] = std::move(pack);
  last_use_[entry] = ++clock_;
  guess_[hash(pointers) % kGuesses] = static_cast<std::uint8_t>(entry);
  return packs_[entry];
}

}  // namespace hipdnn_rt
