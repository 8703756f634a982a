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

FlexiblePlan PlanCache::find_flexible(const FlexibleKey& key, const std::vector<Shape>& shapes) const {
  const std::lock_guard lock(mutex_);
  FlexiblePlan smallest;
  const auto known = flexible_.find(key);
  if (known == flexible_.end()) return smallest;
  for (const Flexible& entry : known->second) {
    if (!fits(shapes, entry.shapes) || (smallest.plan && !fits(entry.shapes, smallest.shapes))) continue;
    if (auto plan = entry.plan.lock()) smallest = {std::move(plan), entry.shapes};
  }
  return smallest;
}

void PlanCache::insert_flexible(const FlexibleKey& key, const FlexiblePlan& made) {
  const std::lock_guard lock(mutex_);
  for (auto& [other, entries] : flexible_) std::erase_if(entries, [](const Flexible& entry) { return entry.plan.expired(); });
  std::erase_if(flexible_, [](const auto& entry) { return entry.second.empty(); });
  flexible_[key].push_back({made.plan, made.shapes});
}

std::size_t PlanCache::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(plans_.begin(), plans_.end(), [](const auto& entry) { return !entry.second.expired(); }));
}

}  // namespace hipdnn_rt
