#include "hipdnn_rt/variant_pack.h"

#include <algorithm>

namespace hipdnn_rt {

Descriptor make_variant_pack(const std::shared_ptr<const Library>& library, std::span<const std::int64_t> uids,
                             std::span<void* const> pointers, void* workspace, const std::string& what) {
  Descriptor pack(library, HIPDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const auto count = static_cast<std::int64_t>(uids.size());
  pack.set(HIPDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, HIPDNN_TYPE_INT64, count, uids.data(), what);
  pack.set(HIPDNN_ATTR_VARIANT_PACK_DATA_POINTERS, HIPDNN_TYPE_VOID_PTR, count, pointers.data(), what);
  pack.set(HIPDNN_ATTR_VARIANT_PACK_WORKSPACE, HIPDNN_TYPE_VOID_PTR, 1, &workspace, what);
  pack.finalize(what);
  return pack;
}

const Descriptor* VariantPackCache::find(std::span<void* const> pointers) {
  for (Entry& entry : entries_) {
    if (entry.pack && std::equal(pointers.begin(), pointers.end(), entry.pointers.begin(), entry.pointers.end())) {
      entry.last_use = ++clock_;
      return &entry.pack;
    }
  }
  return nullptr;
}

const Descriptor& VariantPackCache::insert(std::span<void* const> pointers, Descriptor pack) {
  Entry& entry = *std::min_element(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.last_use < b.last_use; });
  entry.pointers.assign(pointers.begin(), pointers.end());
  entry.pack = std::move(pack);
  entry.last_use = ++clock_;
  return entry.pack;
}

}  // namespace hipdnn_rt
