// Asks the engines which of them take a graph, and keeps the choice.
#include "engine_descriptors.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "log.h"
#include "names.h"
#include "plugin_api.h"
#include "status.h"

namespace hipdnn_port {
namespace {

/// Bytes of all virtual tensors: what a graph needs beyond its operands if nothing in it is fused. The largest number where it overflows.
std::int64_t estimate_workspace(const Graph& graph) {
  std::int64_t total = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (!tensor.is_virtual) continue;
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(tensor.element_count(), static_cast<std::int64_t>(element_bytes(tensor.dtype)), &bytes) ||
        __builtin_add_overflow(total, bytes, &total)) {
      return std::numeric_limits<std::int64_t>::max();
    }
  }
  return total;
}

std::shared_ptr<Descriptor> make_knob_choice(const std::string& name, std::int64_t value) {
  auto choice = make_descriptor(HIPDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  choice->set(HIPDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, HIPDNN_TYPE_CHAR, static_cast<std::int64_t>(name.size()), name.data());
  choice->set(HIPDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, HIPDNN_TYPE_INT64, 1, &value);
  choice->finalize();
  return choice;
}

}  // namespace

std::int64_t engine_id(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return static_cast<std::int64_t>(hash);
}

std::shared_ptr<EngineDescriptor> EngineDescriptor::accepted(std::shared_ptr<GraphDescriptor> graph, const Engine& engine) {
  auto made = std::make_shared<EngineDescriptor>(*find_spec(HIPDNN_BACKEND_ENGINE_DESCRIPTOR));
  made->store_descriptor(HIPDNN_ATTR_ENGINE_OPERATION_GRAPH, std::move(graph));
  made->store_integers(HIPDNN_ATTR_ENGINE_GLOBAL_INDEX, HIPDNN_TYPE_INT64, {engine_id(engine.name())});
  made->engine_ = &engine;
  made->finalize();
  return made;
}

void EngineDescriptor::on_finalize() {
  if (engine_ == nullptr) {
    const std::int64_t id = integer(HIPDNN_ATTR_ENGINE_GLOBAL_INDEX);
    const auto found = std::ranges::find(engines(), id, [](const Engine* engine) { return engine_id(engine->name()); });
    if (found == engines().end()) {
      fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(HIPDNN_ATTR_ENGINE_GLOBAL_INDEX), ": no engine has id ", id);
    }
    const Graph& asked = *graph()->graph();
    auto reason = withheld_from_plugins(asked);
    if (!reason) reason = (*found)->refuses(asked);
    if (reason) {
      fail(HIPDNN_STATUS_BAD_PARAM, (*found)->name(), " does not take the graph: ", *reason);
    }
    engine_ = *found;
  }
  store_string(HIPDNN_ATTR_ENGINE_NAME_EXT, std::string(engine_->name()));
}

void EngineHeuristicDescriptor::on_finalize() {
  const auto graph = descriptor<GraphDescriptor>(HIPDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  const HandleState& handle = graph->handle();
  const PlanOptions options{.constants = {}, .threads = handle.threads.load(), .vendor_handle = handle.vendor};
  std::string refusals;
  results_.clear();
  if (const auto reason = withheld_from_plugins(*graph->graph())) {
    refusals = text(" all engines: ", *reason);
  } else {
    for (Proposal& proposal : rank(*graph->graph(), options, refusals)) {
      results_.push_back({EngineDescriptor::accepted(graph, *proposal.engine), std::move(proposal)});
    }
  }
  if (refusals.empty()) return;
  const std::string message = text(describe(*graph->graph()), " has ", results_.size(), results_.size() == 1 ? " proposal" : " proposals",
                                   "; refused by", refusals);
  if (results_.empty()) set_last_error(message);  // success without engines: the reasons must not be lost
  log(HIPDNN_SEV_INFO, message);  // an answer, whatever it is: callers ask in order to know
}

void EngineHeuristicDescriptor::get(int name, hipdnnBackendAttributeType_t type, std::int64_t requested, std::int64_t* actual,
                                    void* data) const {
  if (name != HIPDNN_ATTR_ENGINEHEUR_RESULTS) return Descriptor::get(name, type, requested, actual, data);
  require_readable();
  require_row(name, type);
  if (requested < 0) fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(name), ": requested count ", requested, " is negative");
  const auto available = static_cast<std::int64_t>(results_.size());
  std::int64_t& count = require_argument(actual, "element count");
  if (requested == 0) {
    count = available;
    return;
  }
  if (data == nullptr) fail(HIPDNN_STATUS_BAD_PARAM_NULL_POINTER, attribute_name(name), ": data is null");
  const std::span handles(static_cast<const hipdnnBackendDescriptor_t*>(data), static_cast<std::size_t>(std::min(requested, available)));
  std::vector<EngineConfigDescriptor*> configs;
  for (const hipdnnBackendDescriptor_t handle : handles) {
    auto* config = dynamic_cast<EngineConfigDescriptor*>(require_argument(handle, "engine configuration in the array").object.get());
    if (config == nullptr || config->finalized()) {
      fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(name), ": element ", configs.size(), " must be an unfinalized ",
           descriptor_name(HIPDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    }
    configs.push_back(config);
  }
  for (std::size_t i = 0; i < configs.size(); ++i) configs[i]->assign(results_[i].engine, results_[i].proposal);
  count = static_cast<std::int64_t>(configs.size());
}

void EngineConfigDescriptor::assign(std::shared_ptr<EngineDescriptor> engine, const Proposal& proposal) {
  store_descriptor(HIPDNN_ATTR_ENGINECFG_ENGINE, std::move(engine));
  std::vector<std::shared_ptr<Descriptor>> choices;
  for (const auto& [name, value] : proposal.knobs) choices.push_back(make_knob_choice(name, value));
  if (!choices.empty()) store_descriptors(HIPDNN_ATTR_ENGINECFG_KNOB_CHOICES, std::move(choices));
  detail_ = proposal.detail;
  is_proposed_ = true;
}

void EngineConfigDescriptor::on_set(int /*name*/) {
  // Another engine, or knobs of the caller: no longer what was proposed.
  detail_.reset();
  is_proposed_ = false;
}

void EngineConfigDescriptor::on_finalize() {
  const auto chosen = engine();
  if (has(HIPDNN_ATTR_ENGINECFG_KNOB_CHOICES) && !is_proposed_) {
    const Descriptor& choice = *value(HIPDNN_ATTR_ENGINECFG_KNOB_CHOICES).descriptors.front();
    fail(HIPDNN_STATUS_BAD_PARAM, chosen->engine().name(), " has no knob '", choice.string(HIPDNN_ATTR_KNOB_CHOICE_KNOB_TYPE), "'");
  }
  store_integers(HIPDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, HIPDNN_TYPE_INT64, {estimate_workspace(*chosen->graph()->graph())});
}

}  // namespace hipdnn_port
