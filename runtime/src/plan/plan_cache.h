// Plans already built on a device, so that equal executables bound to the same constants share one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace hipdnn_rt {

/// What makes two plans of one device equal. `constants` is empty where the library lacks the constants extension.
struct PlanKey {
  /// Canonical text of the descriptors.
  std::string descriptors;
  std::vector<ConstantBinding> constants;

  friend auto operator<=>(const PlanKey&, const PlanKey&) = default;
};

/// Non-owning: a plan lives as long as some program uses it. Safe to use from several threads.
class PlanCache {
 public:
  /// The plan under `key`, or null.
  std::shared_ptr<const Plan> find(const PlanKey& key) const;
  /// Remember `plan`; answers the one already there where another thread was first.
  std::shared_ptr<const Plan> insert(const PlanKey& key, std::shared_ptr<const Plan> plan);
  /// Number of plans alive.
  std::size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::map<PlanKey, std::weak_ptr<const Plan>> plans_;
};

}  // namespace hipdnn_rt
