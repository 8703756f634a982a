// An execution plan: one operation graph compiled by the first engine that takes it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hipdnn_rt/descriptor.h"

namespace hipdnn_rt {

/// A tensor whose pointer never changes while the plan lives. The memory outlives the plan.
struct ConstantBinding {
  std::int64_t uid;
  const void* pointer;

  friend auto operator<=>(const ConstantBinding&, const ConstantBinding&) = default;
};

/// A finalized execution plan. Immutable; executions on several threads may share it, each with its own handle and variant pack.
class Plan {
 public:
  /// Build graph, heuristic, configuration and plan, trying the engines in the library's order.
  /// Throws DeviceError that names `executable` and gives every engine's reason where none takes it.
  static std::shared_ptr<const Plan> build(const Device& device, std::shared_ptr<const Handle> handle, const std::string& executable,
                                           std::span<const DescriptorSpec> descriptors, std::span<const ConstantBinding> constants);

  const Descriptor& descriptor() const { return descriptor_; }
  std::int64_t engine_id() const { return engine_id_; }
  /// The engine's name, or its id in decimal where the library has no names.
  const std::string& engine_name() const { return engine_name_; }
  std::uint64_t workspace_bytes() const { return workspace_bytes_; }
  /// The library's own line about the plan; empty where it has none.
  const std::string& description() const { return description_; }
  /// Time the build took, in milliseconds.
  double build_ms() const { return build_ms_; }

 private:
  Plan() = default;

  /// Kept alive: a library may need the handle a plan was built with when the plan is destroyed.
  std::shared_ptr<const Handle> handle_;
  Descriptor descriptor_;
  std::int64_t engine_id_ = 0;
  std::string engine_name_;
  std::uint64_t workspace_bytes_ = 0;
  std::string description_;
  double build_ms_ = 0;
};

}  // namespace hipdnn_rt
