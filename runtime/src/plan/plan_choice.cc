#include "plan/plan_choice.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "device/clock.h"
#include "device/error.h"
#include "plan/plan_store.h"
#include "program/program.h"

namespace hipdnn_rt {
namespace {

/// So many plans in a row that are not faster than the fastest by a fiftieth end the search: libraries rank what they propose, and building costs more
/// than timing. Of 719 plans of two models on an H200, which are 55 graphs, that leaves out 424, for 0.5 % of the time of what is chosen.
constexpr int kPatience = 3;
constexpr double kFaster = 0.98;

/// How a plan is asked. Bytes 0xff are no number in every type of floats, 0x4b a large one and a large integer. The first is what a program's first run
/// is like; plans that are timed are asked in each way.
constexpr std::array<PlanTimer::Before, 4> kBefore{
    {{std::byte{0xff}, false}, {std::byte{0}, false}, {std::byte{0x4b}, true}, {std::byte{0xff}, true}}};

/// Compare the operands' roles with what the library says that the graph writes, if it does: what is only read may lie in read-only memory.
void check_roles(const Descriptor& graph, const Executable& executable, const std::string& label) {
  const HipdnnApi& api = graph.library().hipdnn();
  std::vector<std::int64_t> written(executable.operands.size());
  std::int64_t count = 0;
  const hipdnnStatus_t status = api.get_attribute(graph.get(), extension_attribute(HIPDNN_ATTR_OPERATIONGRAPH_RESULT_UIDS_MLIR_EXT), HIPDNN_TYPE_INT64,
                                                  static_cast<std::int64_t>(written.size()), &count, written.data());
  if (status != HIPDNN_STATUS_SUCCESS) return static_cast<void>(take_last_error(api));
  written.resize(std::min(written.size(), static_cast<std::size_t>(count)));
  for (const Operand& operand : executable.operands) {
    const bool is_written = std::ranges::find(written, operand.uid) != written.end();
    if (is_written == operand.is_output) continue;
    throw ProgramError(label + ": operand with uid " + std::to_string(operand.uid) + ": expected role " +
                       (is_written ? "\"out\": an operation writes it" : "\"in\": no operation writes it"));
  }
}

std::string whole_ms(double ms) { return std::to_string(std::llround(ms)) + " ms"; }

}  // namespace

PlanChoice::PlanChoice(const Device& device, std::shared_ptr<const Handle> handle, const Executable& executable,
                       std::span<const ConstantBinding> constants, std::string label)
    : device_(device), handle_(std::move(handle)), executable_(executable), constants_(constants), label_(std::move(label)) {}

PlanChoice::Chosen PlanChoice::choose(const PlanRecord* kept) {
  try {
    return choose_proposal(kept);
  } catch (const LibraryError& error) {
    if (!error.is_refusal()) throw;
    throw NoPlanError(error.what());
  }
}

PlanChoice::Chosen PlanChoice::choose_proposal(const PlanRecord* kept) {
  const std::vector<Descriptor> graph = build_descriptors(device_.shared_library(), handle_->get(), executable_.descriptors, label_);
  check_roles(graph.back(), executable_, label_);
  int timed = kept != nullptr ? 0 : device_.options().autotune;
  bool is_compared = kept == nullptr;
  std::vector<Proposal> proposals = propose(device_, graph.back(), label_, reasons_);
  auto first = prefer(proposals, kept);
  if (kept != nullptr && first == proposals.begin()) {
    // What was chosen is not proposed any more: the choice is made again.
    timed = device_.options().autotune;
    first = prefer(proposals, nullptr);
    is_compared = true;
  }
  // What is preferred is taken if it builds, however fast the rest may be.
  const std::span<const Proposal> preferred(proposals.begin(), first);
  const std::span<const Proposal> others(first, proposals.end());
  for (const auto group : {preferred, others}) {
    Chosen chosen = timed > 1 && group.size() > 1 ? fastest_of(group, timed) : first_of(group, is_compared);
    if (chosen.plan) return chosen;
    is_compared = true;
  }
  fail();
}

std::vector<Proposal>::iterator PlanChoice::prefer(std::vector<Proposal>& proposals, const PlanRecord* kept) const {
  const bool has_knobs = std::ranges::any_of(proposals, &Proposal::is_configured);
  return std::stable_partition(proposals.begin(), proposals.end(), [&](const Proposal& proposal) {
    if (kept != nullptr) return proposal.engine_id == kept->engine_id && proposal.knobs == kept->knobs;
    return proposal.engine_id == device_.preferred_engine() && proposal.is_configured == has_knobs;
  });
}

std::shared_ptr<Plan> PlanChoice::try_compile(const Proposal& proposal) {
  try {
    return Plan::compile(device_, handle_, proposal, constants_, label_);
  } catch (const LibraryError& error) {
    pass_over(proposal.describe() + ": " + error.what(), error.is_refusal());
  } catch (const DeviceError& error) {
    pass_over(proposal.describe() + ": " + error.what(), false);
  }
  return nullptr;
}

void PlanChoice::pass_over(const std::string& reason, bool is_refusal) {
  reasons_ += (reasons_.empty() ? "" : "; ") + reason;
  has_failed_ |= !is_refusal;
}

PlanChoice::Chosen PlanChoice::first_of(std::span<const Proposal> proposals, bool is_compared) {
  for (const Proposal& proposal : proposals) {
    std::shared_ptr<Plan> plan = try_compile(proposal);
    if (!plan || (is_compared && device_.reference() != nullptr && !is_right(*plan, proposal))) continue;
    return {std::move(plan), proposal.knobs};
  }
  return {};
}

PlanChoice::Chosen PlanChoice::fastest_of(std::span<const Proposal> proposals, int most) {
  if (timer() == nullptr) return first_of(proposals, true);
  Chosen fastest;
  int timed = 0;
  int since_faster = 0;
  for (const Proposal& proposal : proposals) {
    std::shared_ptr<Plan> plan = try_compile(proposal);
    const std::optional<double> us = plan ? time(*plan, proposal) : std::nullopt;
    if (!us) continue;
    const bool is_fastest = !fastest.plan || *us < fastest.time_us;
    if (is_fastest && !is_steady_and_right(*plan, proposal)) continue;
    since_faster = fastest.plan && *us >= kFaster * fastest.time_us ? since_faster + 1 : 0;
    if (is_fastest) fastest = {std::move(plan), proposal.knobs, *us};
    if (++timed == most || since_faster == kPatience) break;
  }
  return fastest;
}

PlanTimer* PlanChoice::timer() {
  if (timer_ || has_no_timer_) return timer_ ? &*timer_ : nullptr;
  try {
    const std::scoped_lock alone(device_.timing());
    return &timer_.emplace(device_, handle_, executable_, constants_);
  } catch (const DeviceError& error) {
    device_.log(HIPDNN_SEV_WARN, label_ + ": plans are not run before they are used: " + error.what());
    has_no_timer_ = has_failed_ = true;
    return nullptr;
  }
}

PlanJudge& PlanChoice::judge() { return judge_ ? *judge_ : judge_.emplace(device_, executable_, *timer_, label_); }

bool PlanChoice::is_right(const Plan& plan, const Proposal& proposal) {
  PlanTimer* operands = timer();
  if (operands == nullptr) return true;
  try {
    std::unique_lock alone(device_.timing());
    const std::vector<Answer> answer = operands->answer(plan, kBefore.front(), judge().pieces());
    alone.unlock();
    return is_right(answer, proposal);
  } catch (const LibraryError& error) {
    pass_over(proposal.describe() + " builds a plan that does not run: " + error.what(), error.is_refusal());
    return false;
  } catch (const DeviceError& error) {
    // No memory to compare in is no reason against the plan; but the next process compares it.
    device_.log(HIPDNN_SEV_WARN, label_ + ": " + proposal.describe() + " is not compared: " + error.what());
    has_failed_ = true;
    return true;
  }
}

bool PlanChoice::is_right(std::span<const Answer> answer, const Proposal& proposal) {
  const std::optional<std::string> wrong = judge().why_wrong(answer);
  has_failed_ |= judge().has_failed();
  if (wrong) leave_out(proposal, *wrong);
  return !wrong;
}

void PlanChoice::leave_out(const Proposal& proposal, const std::string& reason) {
  device_.log(HIPDNN_SEV_WARN, label_ + ": " + proposal.describe() + " " + reason + "; it is left out");
  pass_over(proposal.describe() + " " + reason, true);
}

template <typename Result, typename Run>
Result PlanChoice::tried(const Proposal& proposal, const Run& run) {
  try {
    return run();
  } catch (const LibraryError& error) {
    pass_over(proposal.describe() + " builds a plan that does not run: " + error.what(), error.is_refusal());
  } catch (const DeviceError& error) {
    pass_over(proposal.describe() + " builds a plan that does not run: " + error.what(), false);
  }
  return {};
}

std::optional<double> PlanChoice::time(const Plan& plan, const Proposal& proposal) {
  return tried<std::optional<double>>(proposal, [&] {
    const std::scoped_lock alone(device_.timing());
    const auto start = Clock::now();
    const double us = timer_->time_us(plan);
    device_.log(HIPDNN_SEV_INFO, label_ + ": " + proposal.describe() + " takes " + std::to_string(us) + " us (built in " + whole_ms(plan.build_ms()) +
                                     ", timed in " + whole_ms(milliseconds_since(start)) + ")");
    return us;
  });
}

bool PlanChoice::is_steady_and_right(const Plan& plan, const Proposal& proposal) {
  return tried<bool>(proposal, [&] {
    std::unique_lock alone(device_.timing());
    const std::vector<Answer> answer = timer_->answer(plan, kBefore.front());
    const bool is_steady_plan = std::ranges::all_of(kBefore.begin() + 1, kBefore.end(), [&](const PlanTimer::Before& before) {
      return is_steady(answer, timer_->answer(plan, before));
    });
    alone.unlock();
    if (!is_steady_plan) leave_out(proposal, "answers otherwise each time");
    return is_steady_plan && is_right(timer_->excerpt(answer, judge().pieces()), proposal);
  });
}

void PlanChoice::fail() {
  // An empty ranking is no failure of a call, but a library may have left its reasons.
  if (reasons_.empty()) reasons_ = take_last_error(device_.library().hipdnn());
  if (has_failed_) throw DeviceError("no plan could be built for executable " + label_ + ": " + reasons_);
  throw NoPlanError("no engine of port '" + std::string(device_.port().name) + "' takes executable " + label_ +
                    (reasons_.empty() ? "" : ": " + reasons_));
}

}  // namespace hipdnn_rt
