// Plans as bytes: an envelope that the front writes, around what the engine says of its plan.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "plan_descriptors.h"
#include "status.h"

namespace hipdnn_port {
namespace {

constexpr int format = 1;

[[noreturn]] void refuse(std::string_view reason) {
  fail(HIPDNN_STATUS_NOT_SUPPORTED, "the serialized plan cannot be used: ", reason, "; build it from its graph");
}

}  // namespace

std::string ExecutionPlanDescriptor::serialize() const {
  const std::string payload = plan_->serialize();
  if (payload.empty()) fail(HIPDNN_STATUS_NOT_SUPPORTED, engine_->name(), " does not serialize its plans; rebuild them from the graph");
  nlohmann::json envelope = {{"format", format}, {"library", std::string(library_name())}, {"version", library_version()},
                             {"engine", std::string(engine_->name())}};
  envelope["uids"] = integers(HIPDNN_ATTR_EXECUTION_PLAN_TENSOR_UIDS_EXT);
  for (const Operand& operand : operands_) envelope["operands"].push_back({operand.uid, operand.alignment_mask});
  envelope["plan"] = nlohmann::json::binary({payload.begin(), payload.end()});
  const std::vector<std::uint8_t> bytes = nlohmann::json::to_cbor(envelope);
  return {bytes.begin(), bytes.end()};
}

std::shared_ptr<ExecutionPlanDescriptor> ExecutionPlanDescriptor::restore(std::string_view serialized, const HandleState& handle) {
  const nlohmann::json envelope = nlohmann::json::from_cbor(serialized, true, false);
  const auto made = std::make_shared<ExecutionPlanDescriptor>(*find_spec(HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
  try {
    if (envelope.at("format").get<int>() != format || envelope.at("library").get<std::string>() != library_name() ||
        envelope.at("version").get<std::string>() != library_version()) {
      refuse("another version wrote it");
    }
    const auto name = envelope.at("engine").get<std::string>();
    const auto found = std::ranges::find(engines(), name, &Engine::name);
    if (found == engines().end()) refuse("there is no engine " + name);
    const auto& payload = envelope.at("plan").get_binary();
    const PlanOptions options{.constants = {}, .threads = handle.threads.load(), .vendor_handle = handle.vendor};
    made->engine_ = *found;
    made->plan_ = (*found)->restore({reinterpret_cast<const char*>(payload.data()), payload.size()}, options);
    for (const auto& operand : envelope.at("operands")) {
      const auto uid = operand.at(0).get<std::int64_t>();
      made->operands_.push_back({.uid = uid, .alignment_mask = operand.at(1).get<std::uintptr_t>(), .constant = nullptr});
    }
    if (made->operands_.size() < made->plan_->uids().size() || made->operands_.size() > most_operands) refuse("it is damaged");
    made->show(envelope.at("uids").get<std::vector<std::int64_t>>());
  } catch (const nlohmann::json::exception&) {
    refuse("it is damaged");
  } catch (const StatusError&) {
    throw;
  } catch (const std::runtime_error& reason) {
    refuse(reason.what());
  }
  made->finish();
  return made;
}

}  // namespace hipdnn_port
