// Whether a plan computes what its graph says.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/device.h"
#include "plan/excerpt.h"
#include "plan/plan_answers.h"
#include "plan/plan_timer.h"

namespace hipdnn_rt {

/// Compares plans of one executable with the device's reference. Used once, by one thread.
class PlanJudge {
 public:
  /// Plans run on the operands of `timer`. `label` names the executable in the log.
  PlanJudge(const Device& device, const Executable& executable, PlanTimer& timer, std::string label);

  /// Which part of an answer is compared.
  const Pieces& pieces() const { return excerpt_.pieces; }
  /// Whether there was no reference for a reason that may be gone the next time.
  bool has_failed() const { return has_failed_; }
  /// Why a plan that answered this, in these pieces, is not to be used; nothing where it is right, or where there is no reference for the executable.
  std::optional<std::string> why_wrong(std::span<const Answer> answer);

 private:
  /// What the executable's outputs are on the timer's operands; none where the reference cannot tell.
  const std::vector<Answer>& wanted();

  const Device& device_;
  Excerpt excerpt_;
  PlanTimer& timer_;
  std::string label_;
  /// Made when the first plan is judged.
  std::optional<std::vector<Answer>> wanted_;
  bool has_failed_ = false;
};

}  // namespace hipdnn_rt
