#include "plan/plan_cache.h"

#include <algorithm>

namespace hipdnn_rt {

std::shared_ptr<const Plan> PlanCache::find(const PlanKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = plans_.find(key);
  return found == plans_.end() ? nullptr : found->second.lock();
}

std::shared_ptr<const Plan> PlanCache::insert(const PlanKey& key, std::shared_ptr<const Plan> plan) {
  const std::lock_guard lock(mutex_);
  std::erase_if(plans_, [](const auto& entry) { return entry.second.expired(); });
  const auto [entry, is_new] = plans_.try_emplace(key, plan);
  if (is_new) return plan;
  std::shared_ptr<const Plan> first = entry->second.lock();
  return first ? first : plan;
}

std::size_t PlanCache::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(plans_.begin(), plans_.end(), [](const auto& entry) { return !entry.second.expired(); }));
}

}  // namespace hipdnn_rt
