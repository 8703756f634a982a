// What a library has refused, kept on disk beside the plans: the next process compiles the model in another form at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/error.h"
#include "device/log.h"
#include "plan/device.h"
#include "storage/disk_cache.h"

namespace hipdnn_rt {

/// The refusals of one library on one device, in a folder that others share. Safe to use from any number of threads and processes; see DiskCache
/// for whom it trusts. Nothing throws: a failure is a line in the log, and as if there were no refusal.
class RefusalStore {
 public:
  explicit RefusalStore(const Device& device, const std::string& folder);

  /// The newest ones, of a bounded number. Broken entries are deleted.
  std::vector<RefusedPlan> all() const;
  void add(const RefusedPlan& refusal) const;

 private:
  DiskCache cache_;
  /// Digest of all that a refusal depends on beside its graph.
  std::string setting_;
  Log log_;
};

}  // namespace hipdnn_rt
