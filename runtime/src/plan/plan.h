// An execution plan: one operation graph compiled by the engine that is chosen for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/descriptor.h"

namespace hipdnn_rt {

class Device;
struct Executable;
struct PlanRecord;
struct Proposal;

/// A tensor whose pointer never changes while the plan lives. The memory outlives the plan.
struct ConstantBinding {
  std::int64_t uid;
  const void* pointer;

  friend auto operator<=>(const ConstantBinding&, const ConstantBinding&) = default;
};

/// A finalized execution plan. Immutable; executions on several threads may share it, each with its own handle and variant pack.
class Plan {
 public:
  /// The plan of an executable: the one that the device's store has, else the first or the fastest of the library's proposals, as the device's
  /// options say. Throws NoPlanError that names the executable and gives every engine's reason where none takes it, DeviceError where
  /// something else goes wrong.
  static std::shared_ptr<const Plan> build(const Device& device, std::shared_ptr<const Handle> handle, const Executable& executable,
                                           std::span<const ConstantBinding> constants);
  /// The plan of one proposal. Throws DeviceError where the engine does not build it.
  static std::shared_ptr<Plan> compile(const Device& device, std::shared_ptr<const Handle> handle, const Proposal& proposal,
                                       std::span<const ConstantBinding> constants, const std::string& executable);

  const Descriptor& descriptor() const { return descriptor_; }
  std::int64_t engine_id() const { return engine_id_; }
  /// The engine's name, or its id in decimal where the library has no names.
  const std::string& engine_name() const { return engine_name_; }
  std::uint64_t workspace_bytes() const { return workspace_bytes_; }
  /// The library's own line about the plan; empty where it has none.
  const std::string& description() const { return description_; }
  /// Time the build took, in milliseconds.
  double build_ms() const { return build_ms_; }
  /// Time of one execution, in microseconds, where the plan was chosen by that; else 0.
  double timed_us() const { return timed_us_; }
  /// Whether the plan was not built but read from the device's store.
  bool is_restored() const { return is_restored_; }

 private:
  Plan() = default;
  static std::shared_ptr<Plan> restore(const Device& device, std::shared_ptr<const Handle> handle, const PlanRecord& record,
                                       const std::string& executable);
  /// Read from the descriptor what a plan is asked for.
  void describe(const Device& device, const std::string& what);
  /// The library's own form of the plan; empty where it has none.
  std::vector<std::byte> serialize() const;

  /// Kept alive: a library may need the handle a plan was built with when the plan is destroyed.
  std::shared_ptr<const Handle> handle_;
  Descriptor descriptor_;
  std::int64_t engine_id_ = 0;
  std::string engine_name_;
  std::uint64_t workspace_bytes_ = 0;
  std::string description_;
  double build_ms_ = 0;
  double timed_us_ = 0;
  bool is_restored_ = false;
};

}  // namespace hipdnn_rt
