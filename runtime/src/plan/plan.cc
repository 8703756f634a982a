#include "plan/plan.h"

#include <algorithm>
#include <array>

#include "device/clock.h"
#include "device/error.h"
#include "plan/device.h"
#include "plan/plan_choice.h"
#include "plan/plan_store.h"
#include "plan/proposals.h"
#include "program/program.h"

namespace hipdnn_rt {
namespace {

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
    if (kept && kept->timed_plans < device.options().autotune) kept.reset();
  }
  if (kept && !kept->plan.empty()) {
    if (std::shared_ptr<Plan> plan = restore(device, handle, *kept, label_of(executable))) {
      plan->build_ms_ = milliseconds_since(start);
      return plan;
    }
  }
  PlanChoice choice(device, handle, executable, constants, label_of(executable));
  auto [plan, knobs, time_us] = choice.choose(kept ? &*kept : nullptr);
  const bool is_same = kept && kept->engine_id == plan->engine_id_ && kept->knobs == knobs;
  plan->timed_us_ = is_same ? kept->time_us : time_us;
  // A kept plan that the library did not take again is replaced. What was chosen for want of memory, say, is not for the next process.
  if (store != nullptr && !choice.has_failed() && !(is_same && kept->plan.empty())) {
    const int timed_plans = is_same ? kept->timed_plans : device.options().autotune;
    store->store({plan->engine_id_, plan->engine_name_, knobs, timed_plans, plan->timed_us_, plan->serialize(), key});
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
