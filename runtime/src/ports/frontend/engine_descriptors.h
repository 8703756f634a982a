// The descriptors that choose an engine: heuristic, engine, knob choice, configuration.
#pragma once

#include <memory>
#include <vector>

#include "descriptor.h"
#include "engine.h"
#include "graph_descriptor.h"

namespace hipdnn_port {

class EngineDescriptor final : public Descriptor {
 public:
  using Descriptor::Descriptor;
  /// Finalized, for a graph that the engine is known to take.
  static std::shared_ptr<EngineDescriptor> accepted(std::shared_ptr<GraphDescriptor> graph, const Engine& engine);
  /// Valid once finalized.
  const Engine& engine() const { return *engine_; }
  std::shared_ptr<GraphDescriptor> graph() const { return descriptor<GraphDescriptor>(HIPDNN_ATTR_ENGINE_OPERATION_GRAPH); }

 protected:
  void on_finalize() override;

 private:
  const Engine* engine_ = nullptr;  // one of engines(), or chosen by index at finalize
};

class EngineHeuristicDescriptor final : public Descriptor {
 public:
  using Descriptor::Descriptor;
  void get(int name, hipdnnBackendAttributeType_t type, std::int64_t requested, std::int64_t* actual, void* data) const override;

 protected:
  void on_finalize() override;
  hipdnnStatus_t status_of_early_get() const override { return HIPDNN_STATUS_BAD_PARAM_NOT_FINALIZED; }

 private:
  struct Result {
    std::shared_ptr<EngineDescriptor> engine;
    Proposal proposal;
  };
  std::vector<Result> results_;  // best first
};

class EngineConfigDescriptor final : public Descriptor {
 public:
  using Descriptor::Descriptor;
  std::shared_ptr<EngineDescriptor> engine() const { return descriptor<EngineDescriptor>(HIPDNN_ATTR_ENGINECFG_ENGINE); }
  /// What the heuristic does to a configuration of the caller. Requires an unfinalized one.
  void assign(std::shared_ptr<EngineDescriptor> engine, const Proposal& proposal);
  /// As of the proposal that was assigned; null without one.
  const std::shared_ptr<const void>& detail() const { return detail_; }

 protected:
  void on_set(int name) override;
  void on_finalize() override;

 private:
  std::shared_ptr<const void> detail_;
  bool is_proposed_ = false;
};

}  // namespace hipdnn_port
