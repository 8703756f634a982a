// Checks a variant pack and sorts its bindings for look-up.
#include <algorithm>

#include "names.h"
#include "plan_descriptors.h"
#include "status.h"

namespace hipdnn_port {

void VariantPackDescriptor::on_finalize() {
  const std::vector<std::int64_t> uids = integers(HIPDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const std::vector<void*> given = pointers(HIPDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (uids.size() != given.size()) {
    fail(HIPDNN_STATUS_BAD_PARAM, "variant pack: ", uids.size(), " uids and ", given.size(), " pointers; expected as many");
  }
  std::vector<Binding> bindings;
  for (std::size_t i = 0; i < uids.size(); ++i) bindings.push_back({.uid = uids[i], .pointer = given[i]});
  std::ranges::sort(bindings, {}, &Binding::uid);
  const auto twice = std::ranges::adjacent_find(bindings, {}, &Binding::uid);
  if (twice != bindings.end()) fail(HIPDNN_STATUS_BAD_PARAM, "variant pack: uid ", twice->uid, " appears twice");
  overrides_ = read_overrides();
  if (has(HIPDNN_ATTR_VARIANT_PACK_WORKSPACE)) workspace_ = pointers(HIPDNN_ATTR_VARIANT_PACK_WORKSPACE).at(0);
  bindings_ = std::move(bindings);
}

std::vector<Override> VariantPackDescriptor::read_overrides() const {
  const auto read = [&](int name) { return has(name) ? integers(name) : std::vector<std::int64_t>{}; };
  const std::vector<std::int64_t> ids = read(HIPDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS_EXT);
  const std::vector<std::int64_t> lengths = read(HIPDNN_ATTR_VARIANT_PACK_OVERRIDE_LENGTHS_EXT);
  const std::vector<std::int64_t> dims = read(HIPDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES_EXT);
  const std::vector<std::int64_t> strides = read(HIPDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES_EXT);
  const std::size_t shapes = dims.size();
  if (ids.size() != lengths.size() || shapes != strides.size()) {
    fail(HIPDNN_STATUS_BAD_PARAM, "variant pack: ", ids.size(), " override ids, ", lengths.size(), " lengths, ", shapes, " dims, ", strides.size(),
         " strides; expected as many lengths as ids and strides as dims");
  }
  std::size_t total = 0;
  for (const std::int64_t length : lengths) {
    if (length <= 0 || static_cast<std::size_t>(length) > shapes) {
      fail(HIPDNN_STATUS_BAD_PARAM, "variant pack: override length ", length, " is not in [1, ", shapes, "]");
    }
    total += static_cast<std::size_t>(length);
  }
  if (total != shapes) fail(HIPDNN_STATUS_BAD_PARAM, "variant pack: override lengths sum to ", total, ", expected ", shapes);
  std::vector<std::int64_t> bound = integers(HIPDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  for (const std::int64_t id : ids) {
    const auto found = std::ranges::find(bound, id);
    if (found == bound.end()) fail(HIPDNN_STATUS_BAD_PARAM, "variant pack: override uid ", id, " is unbound or appears twice");
    bound.erase(found);
  }
  std::vector<Override> overrides;
  std::ptrdiff_t first = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::ptrdiff_t last = first + lengths[i];
    overrides.push_back({ids[i], {dims.begin() + first, dims.begin() + last}, {strides.begin() + first, strides.begin() + last}});
    first = last;
  }
  std::ranges::sort(overrides, {}, &Override::uid);
  return overrides;
}

}  // namespace hipdnn_port
