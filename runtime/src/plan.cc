#include "hipdnn_rt/plan.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "hipdnn_rt/error.h"
#include "hipdnn_rt/plan_store.h"
#include "hipdnn_rt/plan_timer.h"
#include "hipdnn_rt/program.h"
#include "hipdnn_rt/proposals.h"

namespace hipdnn_rt {
namespace {

/// How a plan is asked. Bytes 0xff are no number in every type of floats, 0x4b a large one and a large integer.
constexpr std::array<PlanTimer::Before, 4> kBefore{
    {{std::byte{0}, false}, {std::byte{0xff}, false}, {std::byte{0x4b}, true}, {std::byte{0xff}, true}}};

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

void set_constants(Descriptor& plan, std::span<const ConstantBinding> constants, const std::string& what) {
  if (constants.empty()) return;
  std::vector<std::int64_t> uids;
  std::vector<const void*> pointers;
  for (const ConstantBinding& constant : constants) {
    uids.push_back(constant.uid);
    pointers.push_back(constant.pointer);
  }
  const auto count = static_cast<std::int64_t>(uids.size());
  plan.set(extension_attribute(HIPDNN_ATTR_EXECUTION_PLAN_CONSTANT_UIDS_MLIR_EXT), HIPDNN_TYPE_INT64, count, uids.data(), what);
  plan.set(extension_attribute(HIPDNN_ATTR_EXECUTION_PLAN_CONSTANT_POINTERS_MLIR_EXT), HIPDNN_TYPE_VOID_PTR, count, pointers.data(), what);
}

std::string label_of(const Executable& executable) {
  return executable.name + (executable.summary.empty() ? "" : " (" + executable.summary + ")");
}

/// Chooses among the library's proposals for one executable. Used once, by one thread.
class PlanChoice {
 public:
  PlanChoice(const Device& device, std::shared_ptr<const Handle> handle, const Executable& executable,
             std::span<const ConstantBinding> constants)
      : device_(device), handle_(std::move(handle)), executable_(executable), constants_(constants), label_(label_of(executable)) {}

  struct Chosen {
    std::shared_ptr<Plan> plan;
    std::string knobs;
    double time_us = 0;
  };

  /// Whether a proposal was passed over for a reason that may be gone the next time.
  bool has_failed() const { return has_failed_; }

  /// `kept` is what an earlier process chose, to be chosen again. Throws NoPlanError where no proposal builds, DeviceError where that is not
  /// the library's judgement of the graph.
  Chosen choose(const PlanRecord* kept) {
    if (device_.options().overrides_shapes) {
      if (Chosen chosen = choose_flexible(kept); chosen.plan) return chosen;
    }
    try {
      return choose_any(kept, false);
    } catch (const LibraryError& error) {
      if (!error.is_refusal()) throw;
      throw NoPlanError(error.what());
    }
  }

 private:
  /// A plan that takes other shapes; none where the library, or its engines, have no such plans.
  Chosen choose_flexible(const PlanRecord* kept) {
    std::string reason;
    try {
      Chosen chosen = choose_any(kept, true);
      const auto preferred = device_.preferred_engine();
      if (!chosen.plan || !preferred || chosen.plan->engine_id() == *preferred) return chosen;
      reason = "engine " + device_.options().engine + " has none";
    } catch (const NoPlanError& error) {
      reason = error.what();
    } catch (const LibraryError& error) {
      if (!error.is_refusal()) throw;
      reason = error.what();
    }
    device_.log(HIPDNN_SEV_INFO, label_ + ": no plan takes other shapes: " + reason);
    reasons_.clear();
    return {};
  }

  Chosen choose_any(const PlanRecord* kept, bool takes_overrides) {
    const std::vector<Descriptor> graph =
        build_descriptors(device_.shared_library(), handle_->get(), executable_.descriptors, label_, takes_overrides);
    const bool has_preference = kept != nullptr || device_.preferred_engine();
    int timed = kept != nullptr ? 0 : device_.options().timed_plans;
    if (device_.options().finds_first && timed <= 1) {
      std::vector<Proposal> proposals = propose(device_, graph.back(), Ranking::first_engine, label_, reasons_);
      const auto first = prefer(proposals, kept);
      if (Chosen chosen = first_to_build({proposals.begin(), has_preference ? first : proposals.end()}); chosen.plan) return chosen;
    }
    std::vector<Proposal> proposals = propose(device_, graph.back(), Ranking::whole, label_, reasons_);
    auto first = prefer(proposals, kept);
    if (kept != nullptr && first == proposals.begin()) {
      // What was chosen is not proposed any more: the choice is made again.
      timed = device_.options().timed_plans;
      first = prefer(proposals, nullptr);
    }
    // What is preferred is taken if it builds, however fast the rest may be.
    const std::span<const Proposal> preferred(proposals.begin(), first);
    const std::span<const Proposal> others(first, proposals.end());
    for (const auto group : {preferred, others}) {
      if (Chosen chosen = timed > 1 && group.size() > 1 ? fastest(group, timed) : first_to_build(group); chosen.plan) return chosen;
    }
    fail();
  }

  /// Move what was kept, else the preferred engine's proposals, to the front; answers where they end. With knobs that it takes it has one.
  std::vector<Proposal>::iterator prefer(std::vector<Proposal>& proposals, const PlanRecord* kept) const {
    const bool has_knobs = std::ranges::any_of(proposals, &Proposal::is_configured);
    return std::stable_partition(proposals.begin(), proposals.end(), [&](const Proposal& proposal) {
      if (kept != nullptr) return proposal.engine_id == kept->engine_id && proposal.knobs == kept->knobs;
      return proposal.engine_id == device_.preferred_engine() && proposal.is_configured == has_knobs;
    });
  }

  std::shared_ptr<Plan> try_compile(const Proposal& proposal) {
    try {
      return Plan::compile(device_, handle_, proposal, constants_, label_);
    } catch (const LibraryError& error) {
      pass_over(proposal.describe() + ": " + error.what(), error.is_refusal());
    } catch (const DeviceError& error) {
      pass_over(proposal.describe() + ": " + error.what(), false);
    }
    return nullptr;
  }

  void pass_over(const std::string& reason, bool is_refusal) {
    reasons_ += (reasons_.empty() ? "" : "; ") + reason;
    has_failed_ |= !is_refusal;
  }

  Chosen first_to_build(std::span<const Proposal> proposals) {
    for (const Proposal& proposal : proposals) {
      if (auto plan = try_compile(proposal)) return {std::move(plan), proposal.knobs};
    }
    return {};
  }

  /// Plans that answer alike.
  struct Group {
    std::vector<Answer> answer;
    int count = 0;
    Chosen fastest;
    std::string engines;
  };

  Chosen fastest(std::span<const Proposal> proposals, int most) {
    std::vector<Group> groups;
    std::optional<PlanTimer> timer;
    try {
      timer.emplace(device_, handle_, executable_, constants_);
    } catch (const DeviceError& error) {
      device_.log(HIPDNN_SEV_WARN, label_ + ": plans are not timed: " + error.what());
      has_failed_ = true;
      return first_to_build(proposals);
    }
    int timed = 0;
    for (const Proposal& proposal : proposals) {
      std::shared_ptr<Plan> plan = try_compile(proposal);
      if (!plan) continue;
      Group* group = nullptr;
      const std::optional<double> us = time(*timer, *plan, proposal, groups, group);
      if (!us) continue;
      ++group->count;
      group->engines += (group->engines.empty() ? "" : ", ") + proposal.describe();
      if (!group->fastest.plan || *us < group->fastest.time_us) group->fastest = {std::move(plan), proposal.knobs, *us};
      if (++timed == most) break;
    }
    return of_most(groups);
  }

  /// The fastest of the plans that most agree with; of the library's first where none has a majority.
  Chosen of_most(std::span<Group> groups) {
    if (groups.empty()) return {};
    Group& most = *std::ranges::max_element(groups, {}, &Group::count);
    for (const Group& group : groups) {
      if (&group == &most || group.count == 0) continue;
      device_.log(HIPDNN_SEV_WARN, label_ + ": " + group.engines + " answer otherwise than " + most.engines + ", and are left out");
    }
    return std::move(most.fastest);
  }

  /// Microseconds, and the group that the plan's answer belongs to; nothing where it does not run, or answers otherwise each time.
  std::optional<double> time(PlanTimer& timer, const Plan& plan, const Proposal& proposal, std::vector<Group>& groups, Group*& group) {
    const std::scoped_lock alone(device_.timing());
    const auto start = Clock::now();
    try {
      std::vector<Answer> answer = timer.answer(plan, kBefore.front());
      const bool is_steady = std::ranges::all_of(kBefore.begin() + 1, kBefore.end(), [&](const PlanTimer::Before& before) {
        return agree(answer, timer.answer(plan, before), Of::one_plan);
      });
      if (!is_steady) {
        device_.log(HIPDNN_SEV_WARN, label_ + ": " + proposal.describe() + " answers otherwise each time, and is left out");
        pass_over(proposal.describe() + " answers otherwise each time", true);
        return std::nullopt;
      }
      const auto found = std::ranges::find_if(groups, [&](const Group& known) { return agree(known.answer, answer); });
      group = found != groups.end() ? &*found : &groups.emplace_back(Group{std::move(answer), 0, {}, {}});
      const double asked_ms = milliseconds_since(start);
      const double us = timer.time_us(plan);
      const auto whole = [](double ms) { return std::to_string(std::llround(ms)) + " ms"; };
      device_.log(HIPDNN_SEV_INFO, label_ + ": " + proposal.describe() + " takes " + std::to_string(us) + " us (built in " +
                                       whole(plan.build_ms()) + ", asked in " + whole(asked_ms) + ", timed in " +
                                       whole(milliseconds_since(start) - asked_ms) + ")");
      return us;
    } catch (const LibraryError& error) {
      pass_over(proposal.describe() + " builds a plan that does not run: " + error.what(), error.is_refusal());
    } catch (const DeviceError& error) {
      pass_over(proposal.describe() + " builds a plan that does not run: " + error.what(), false);
    }
    return std::nullopt;
  }

  [[noreturn]] void fail() {
    // An empty ranking is no failure of a call, but a library may have left its reasons.
    if (reasons_.empty()) reasons_ = take_last_error(device_.library().hipdnn());
    if (has_failed_) throw DeviceError("no plan could be built for executable " + label_ + ": " + reasons_);
    throw NoPlanError("no engine of port '" + std::string(device_.port().name) + "' takes executable " + label_ +
                      (reasons_.empty() ? "" : ": " + reasons_));
  }

  const Device& device_;
  std::shared_ptr<const Handle> handle_;
  const Executable& executable_;
  std::span<const ConstantBinding> constants_;
  std::string label_;
  std::string reasons_;
  bool has_failed_ = false;
};

}  // namespace

std::shared_ptr<const Plan> Plan::build(const Device& device, std::shared_ptr<const Handle> handle, const Executable& executable,
                                        std::span<const ConstantBinding> constants) {
  const auto start = Clock::now();
  const PlanStore* store = device.plan_store();
  std::string key;
  std::optional<PlanRecord> kept;
  if (store != nullptr) {
    std::vector<std::int64_t> uids;
    for (const ConstantBinding& constant : constants) uids.push_back(constant.uid);
    key = store->key(executable.canonical, uids);
    kept = store->find(key);
    // Asked to look further than the process that kept it.
    if (kept && kept->timed_plans < device.options().timed_plans) kept.reset();
  }
  if (kept && !kept->plan.empty()) {
    if (std::shared_ptr<Plan> plan = restore(device, handle, *kept, label_of(executable))) {
      plan->build_ms_ = milliseconds_since(start);
      return plan;
    }
  }
  PlanChoice choice(device, handle, executable, constants);
  auto [plan, knobs, time_us] = choice.choose(kept ? &*kept : nullptr);
  const bool is_same = kept && kept->engine_id == plan->engine_id_ && kept->knobs == knobs;
  plan->timed_us_ = is_same ? kept->time_us : time_us;
  // A kept plan that the library did not take again is replaced. What was chosen for want of memory, say, is not for the next process.
  if (store != nullptr && !choice.has_failed() && !(is_same && kept->plan.empty())) {
    const int timed_plans = is_same ? kept->timed_plans : device.options().timed_plans;
    store->store(key, {plan->engine_id_, plan->engine_name_, knobs, timed_plans, plan->timed_us_, plan->serialize()});
  }
  plan->build_ms_ = milliseconds_since(start);
  return plan;
}

std::shared_ptr<Plan> Plan::compile(const Device& device, std::shared_ptr<const Handle> handle, const Proposal& proposal,
                                    std::span<const ConstantBinding> constants, const std::string& executable) {
  const auto start = Clock::now();
  const std::string what = executable + ", plan of " + proposal.describe();
  std::shared_ptr<Plan> plan(new Plan());
  plan->engine_id_ = proposal.engine_id;
  plan->engine_name_ = proposal.engine_name;
  plan->handle_ = std::move(handle);
  plan->descriptor_ = Descriptor(device.shared_library(), HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan->descriptor_.set_descriptor(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposal.configuration, what);
  set_constants(plan->descriptor_, constants, what);
  plan->descriptor_.finalize(what);
  plan->describe(device, what);
  plan->build_ms_ = milliseconds_since(start);
  return plan;
}

std::shared_ptr<Plan> Plan::restore(const Device& device, std::shared_ptr<const Handle> handle, const PlanRecord& record,
                                    const std::string& executable) {
  const HipdnnApi& api = device.library().hipdnn();
  if (api.deserialize_plan == nullptr) return nullptr;
  const std::string what = executable + ", kept plan of " + record.engine_name;
  try {
    hipdnnBackendDescriptor_t raw = nullptr;
    check(api, api.deserialize_plan(handle->get(), &raw, reinterpret_cast<const std::uint8_t*>(record.plan.data()), record.plan.size()),
          "hipdnnBackendCreateAndDeserializeExecutionPlan_ext(" + what + ")");
    std::shared_ptr<Plan> plan(new Plan());
    plan->descriptor_ = Descriptor(device.shared_library(), raw);
    plan->engine_id_ = record.engine_id;
    plan->engine_name_ = record.engine_name;
    plan->handle_ = std::move(handle);
    plan->describe(device, what);
    plan->timed_us_ = record.time_us;
    plan->is_restored_ = true;
    return plan;
  } catch (const DeviceError& error) {
    device.log(HIPDNN_SEV_INFO, std::string(error.what()) + "; the plan is built again");
    return nullptr;
  }
}

void Plan::describe(const Device& device, const std::string& what) {
  const std::int64_t workspace = descriptor_.get_int64(HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, what);
  if (workspace < 0) throw DeviceError(what + ": negative workspace size");
  workspace_bytes_ = static_cast<std::uint64_t>(workspace);
  const HipdnnApi& api = device.library().hipdnn();
  if (device.options().overrides_shapes) {
    std::int64_t count = 0;
    bool takes_overrides = false;
    const hipdnnStatus_t status = api.get_attribute(descriptor_.get(), HIPDNN_ATTR_EXECUTION_PLAN_IS_OVERRIDE_SHAPE_ENABLED_EXT, HIPDNN_TYPE_BOOLEAN, 1,
                                                    &count, &takes_overrides);
    takes_overrides_ = status == HIPDNN_STATUS_SUCCESS && takes_overrides;
    if (status != HIPDNN_STATUS_SUCCESS) take_last_error(api);  // older than such plans; not to appear in a later message
  }
  if (api.describe_plan == nullptr) return;
  std::array<char, 512> text{};
  check(api, api.describe_plan(descriptor_.get(), text.data(), text.size()), "hipdnnPortDescribePlan_ext");
  text.back() = '\0';
  description_ = text.data();
}

std::vector<std::byte> Plan::serialize() const {
  const HipdnnApi& api = descriptor_.library().hipdnn();
  if (api.serialize_plan == nullptr) return {};
  std::size_t size = 0;
  std::vector<std::byte> bytes;
  hipdnnStatus_t status = api.serialize_plan(descriptor_.get(), 0, &size, nullptr);
  if (status == HIPDNN_STATUS_SUCCESS) {
    bytes.resize(size);
    status = api.serialize_plan(descriptor_.get(), size, &size, reinterpret_cast<std::uint8_t*>(bytes.data()));
    bytes.resize(std::min(bytes.size(), size));
  }
  if (status == HIPDNN_STATUS_SUCCESS) return bytes;
  take_last_error(api);  // plugins need not be able to; not to appear in a later message
  return {};
}

}  // namespace hipdnn_rt
