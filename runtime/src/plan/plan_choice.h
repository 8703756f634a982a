// Which of the library's plans a graph gets: the first, the fastest, the one of the preferred engine, or the one an earlier process chose; and never one
// whose answer is wrong.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/plan_judge.h"
#include "plan/plan_timer.h"
#include "plan/proposals.h"

namespace hipdnn_rt {

/// Chooses among the library's proposals for one executable. Used once, by one thread.
class PlanChoice {
 public:
  PlanChoice(const Device& device, std::shared_ptr<const Handle> handle, const Executable& executable,
             std::span<const ConstantBinding> constants, std::string label);

  struct Chosen {
    std::shared_ptr<Plan> plan;
    std::string knobs;
    double time_us = 0;
  };

  /// Whether a proposal was passed over, or not compared, for a reason that may be gone the next time.
  bool has_failed() const { return has_failed_; }

  /// `kept` is what an earlier process chose, to be chosen again. Throws NoPlanError where no proposal builds, or none is right; DeviceError where that
  /// is not the library's judgement of the graph.
  Chosen choose(const PlanRecord* kept);

 private:
  Chosen choose_proposal(const PlanRecord* kept);
  /// Move what was kept, else the preferred engine's proposals, to the front; answers where they end. With knobs that it takes it has one.
  std::vector<Proposal>::iterator prefer(std::vector<Proposal>& proposals, const PlanRecord* kept) const;
  std::shared_ptr<Plan> try_compile(const Proposal& proposal);
  void pass_over(const std::string& reason, bool is_refusal);
  /// The first proposal that builds and is right, if it has to be: what an earlier process kept was compared there.
  Chosen first_of(std::span<const Proposal> proposals, bool is_compared);
  Chosen fastest_of(std::span<const Proposal> proposals, int most);
  /// Operands to run plans on; null, with a line in the log, where memory is short.
  PlanTimer* timer();
  /// On the operands of the timer, which is there.
  PlanJudge& judge();
  /// Whether the plan runs and answers as the reference does.
  bool is_right(const Plan& plan, const Proposal& proposal);
  bool is_right(std::span<const Answer> answer, const Proposal& proposal);
  /// With a warning.
  void leave_out(const Proposal& proposal, const std::string& reason);
  /// Microseconds; nothing where the plan does not run.
  std::optional<double> time(const Plan& plan, const Proposal& proposal);
  /// Whether a plan that is to be chosen answers the same each time, and as the reference does.
  bool is_steady_and_right(const Plan& plan, const Proposal& proposal);
  /// What `run` returns; an empty one, and the proposal is passed over, where the plan does not run.
  template <typename Result, typename Run>
  Result tried(const Proposal& proposal, const Run& run);
  [[noreturn]] void fail();

  const Device& device_;
  std::shared_ptr<const Handle> handle_;
  const Executable& executable_;
  std::span<const ConstantBinding> constants_;
  std::string label_;
  std::string reasons_;
  bool has_failed_ = false;
  bool has_no_timer_ = false;
  std::optional<PlanTimer> timer_;
  std::optional<PlanJudge> judge_;
};

}  // namespace hipdnn_rt
