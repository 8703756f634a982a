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
  if (has(HIPDNN_ATTR_VARIANT_PACK_WORKSPACE)) workspace_ = pointers(HIPDNN_ATTR_VARIANT_PACK_WORKSPACE).at(0);
  bindings_ = std::move(bindings);
}

}  // namespace hipdnn_port
