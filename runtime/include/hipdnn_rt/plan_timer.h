// How long plans of one graph take, on memory of no meaning.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hipdnn_rt/plan.h"
#include "hipdnn_rt/program.h"

namespace hipdnn_rt {

/// Operands of an executable, and the clock of the device. One thread at a time; the handle has no stream.
class PlanTimer {
 public:
  /// Floats are small numbers, everything else is zero: an index or a length has to be a valid one. Constants are the program's own.
  /// Throws DeviceError where memory is short.
  PlanTimer(const Device& device, std::shared_ptr<const Handle> handle, const Executable& executable,
            std::span<const ConstantBinding> constants);

  /// Microseconds of one execution, the median of several series, by events of the device. Blocks. Throws DeviceError where the plan does not run.
  double time_us(const Plan& plan);

 private:
  void run(const Plan& plan, const Descriptor& pack, int count);
  double elapsed_ms(const Plan& plan, const Descriptor& pack, int count);

  const Device& device_;
  std::shared_ptr<const Handle> handle_;
  DeviceBuffer memory_;
  std::vector<std::int64_t> uids_;
  std::vector<void*> pointers_;
};

}  // namespace hipdnn_rt
