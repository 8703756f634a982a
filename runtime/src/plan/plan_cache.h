// Plans already built on a device, so that equal executables bound to the same constants share one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "program/shapes.h"

namespace hipdnn_rt {

/// What makes two plans of one device equal. `constants` is empty where the library lacks the constants extension.
struct PlanKey {
  /// Canonical text of the descriptors.
  std::string descriptors;
  std::vector<ConstantBinding> constants;

  friend auto operator<=>(const PlanKey&, const PlanKey&) = default;
};

/// What makes a plan that takes other shapes one for another graph.
struct FlexibleKey {
  /// Of Shapes.
  std::string structure;
  std::vector<ConstantBinding> constants;

  friend auto operator<=>(const FlexibleKey&, const FlexibleKey&) = default;
};

/// A plan, and the shapes of its graph.
struct FlexiblePlan {
  std::shared_ptr<const Plan> plan;
  std::vector<Shape> shapes;
};

/// Non-owning: a plan lives as long as some program uses it. Safe to use from several threads.
class PlanCache {
 public:
  /// The plan under `key`, or null.
  std::shared_ptr<const Plan> find(const PlanKey& key) const;
  /// Remember `plan`; answers the one already there where another thread was first.
  std::shared_ptr<const Plan> insert(const PlanKey& key, std::shared_ptr<const Plan> plan);
  /// The plan of the smallest graph that these shapes fit in; null where there is none.
  FlexiblePlan find_flexible(const FlexibleKey& key, const std::vector<Shape>& shapes) const;
  void insert_flexible(const FlexibleKey& key, const FlexiblePlan& made);
  /// Number of plans alive.
  std::size_t size() const;

 private:
  struct Flexible {
    std::weak_ptr<const Plan> plan;
    std::vector<Shape> shapes;
  };

  mutable std::mutex mutex_;
  std::map<PlanKey, std::weak_ptr<const Plan>> plans_;
  std::map<FlexibleKey, std::vector<Flexible>> flexible_;
};

}  // namespace hipdnn_rt
