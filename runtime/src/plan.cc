#include "hipdnn_rt/plan.h"

#include <array>
#include <chrono>

#include "hipdnn_rt/error.h"

namespace hipdnn_rt {
namespace {

/// Engine configurations that the library offers for a graph, best first; unfinalized.
std::vector<Descriptor> rank_engines(const std::shared_ptr<const Library>& library, const Descriptor& graph, const std::string& executable) {
  const std::string what = executable + ", engine heuristic";
  Descriptor heuristic(library, HIPDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set_descriptor(HIPDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph, what);
  const hipdnnBackendHeurMode_t mode = HIPDNN_HEUR_MODE_FALLBACK;
  heuristic.set(HIPDNN_ATTR_ENGINEHEUR_MODE, HIPDNN_TYPE_HEUR_MODE, 1, &mode, what);
  heuristic.finalize(what);

  std::int64_t count = heuristic.get_count(HIPDNN_ATTR_ENGINEHEUR_RESULTS, HIPDNN_TYPE_BACKEND_DESCRIPTOR, what);
  std::vector<Descriptor> configurations;
  std::vector<hipdnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    configurations.emplace_back(library, HIPDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configurations.back().get());
  }
  if (count == 0) return configurations;
  const HipdnnApi& api = library->hipdnn();
  check(api, api.get_attribute(heuristic.get(), HIPDNN_ATTR_ENGINEHEUR_RESULTS, HIPDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()),
        "hipdnnBackendGetAttribute(" + what + ", results)");
  configurations.resize(std::min(configurations.size(), static_cast<std::size_t>(count)));
  return configurations;
}

std::int64_t engine_of(const Descriptor& configuration, const std::string& what) {
  return configuration.get_descriptor(HIPDNN_ATTR_ENGINECFG_ENGINE, what).get_int64(HIPDNN_ATTR_ENGINE_GLOBAL_INDEX, what);
}

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

std::string name_engine(const Device& device, std::int64_t id) {
  const auto found = device.engine_names().find(id);
  return found == device.engine_names().end() ? std::to_string(id) : found->second;
}

std::string describe(const Library& library, const Descriptor& plan) {
  std::array<char, 512> text{};
  if (library.hipdnn().describe_plan == nullptr) return {};
  check(library.hipdnn(), library.hipdnn().describe_plan(plan.get(), text.data(), text.size()), "hipdnnPortDescribePlan_ext");
  text.back() = '\0';
  return text.data();
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::shared_ptr<const Plan> Plan::build(const Device& device, std::shared_ptr<const Handle> handle, const std::string& executable,
                                        std::span<const DescriptorSpec> descriptors, std::span<const ConstantBinding> constants) {
  const auto start = std::chrono::steady_clock::now();
  const std::shared_ptr<const Library>& library = device.shared_library();
  const std::vector<Descriptor> graph = build_descriptors(library, handle->get(), descriptors, executable);
  std::string reasons;
  for (Descriptor& configuration : rank_engines(library, graph.back(), executable)) {
    std::string engine = "an engine";
    try {
      configuration.finalize(executable + ", engine configuration");
      std::shared_ptr<Plan> plan(new Plan());
      plan->engine_id_ = engine_of(configuration, executable);
      engine = plan->engine_name_ = name_engine(device, plan->engine_id_);
      const std::string what = executable + ", plan of " + engine;
      plan->handle_ = handle;
      plan->descriptor_ = Descriptor(library, HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan->descriptor_.set_descriptor(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration, what);
      set_constants(plan->descriptor_, constants, what);
      plan->descriptor_.finalize(what);
      const std::int64_t workspace = plan->descriptor_.get_int64(HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, what);
      if (workspace < 0) throw DeviceError(what + ": negative workspace size");
      plan->workspace_bytes_ = static_cast<std::uint64_t>(workspace);
      plan->description_ = describe(*library, plan->descriptor_);
      plan->build_ms_ = milliseconds_since(start);
      return plan;
    } catch (const DeviceError& error) {
      reasons += (reasons.empty() ? "" : "; ") + engine + ": " + error.what();
    }
  }
  // An empty ranking is no failure of a call, but a library may have left its reasons.
  if (reasons.empty()) reasons = take_last_error(library->hipdnn());
  throw DeviceError("no engine of port '" + std::string(device.port().name) + "' takes executable " + executable +
                    (reasons.empty() ? "" : ": " + reasons));
}

}  // namespace hipdnn_rt
