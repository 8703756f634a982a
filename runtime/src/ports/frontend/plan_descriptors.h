// The descriptors of execution: plan and variant pack.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor.h"
#include "engine.h"
#include "engine_descriptors.h"
#include "handle.h"
#include "override_shapes.h"

namespace hipdnn_port {

class VariantPackDescriptor final : public Descriptor {
 public:
  using Descriptor::Descriptor;
  struct Binding {
    std::int64_t uid;
    void* pointer;
  };
  /// Sorted by uid; valid once finalized, like the rest.
  const std::vector<Binding>& bindings() const { return bindings_; }
  void* workspace() const { return workspace_; }
  /// Shapes in the place of those of the plan's graph, sorted by uid.
  const std::vector<Override>& overrides() const { return overrides_; }

 protected:
  void on_finalize() override;

 private:
  std::vector<Override> read_overrides() const;

  std::vector<Binding> bindings_;
  void* workspace_ = nullptr;
  std::vector<Override> overrides_;
};

class ExecutionPlanDescriptor final : public Descriptor {
 public:
  using Descriptor::Descriptor;
  /// Runs the plan on the calling thread; any number of threads may, each with its own pointers. Allocates and locks nothing, but for a pack with
  /// other shapes than the graph's.
  /// BAD_PARAM names the uid whose pointer is missing, null or not aligned as its tensor promises.
  void execute(const VariantPackDescriptor& pack, const Launch& launch) const;
  const Plan& plan() const { return *built_.plan; }
  /// What `restore` makes an equal plan of, for a library of the same version. NOT_SUPPORTED where the engine's plans have no such form.
  std::string serialize() const;
  /// A finalized plan, without graph and configuration. NOT_SUPPORTED where `serialized` is of another version or damaged, or the engine does not
  /// take it.
  static std::shared_ptr<ExecutionPlanDescriptor> restore(std::string_view serialized, const HandleState& handle);

 protected:
  void on_finalize() override;

 private:
  /// Pointers of one execution live on the stack, so that executing needs no heap; no sensible graph comes near this many operands.
  static constexpr std::size_t most_operands = 1024;

  struct Operand {
    std::int64_t uid;
    std::uintptr_t alignment_mask;
    void* constant;  // used where the pack does not bind the uid; else null
  };

  /// A plan of an engine's, and its operands in its order, then those of the graph that it does not read.
  struct Built {
    std::unique_ptr<const Plan> plan;
    std::vector<Operand> operands;
  };
  /// The plan for other shapes.
  struct Reshaped {
    std::vector<Override> overrides;
    Built built;
  };

  Constants read_constants(const Graph& graph) const;
  Built build(const Graph& graph) const;
  /// The plan for those shapes, built at their first use. BAD_PARAM and NOT_SUPPORTED as of at_shapes, or where the engine does not take the graph.
  std::shared_ptr<const Reshaped> at(const std::vector<Override>& overrides) const;
  void run(const Built& built, const VariantPackDescriptor& pack, void* workspace, const Launch& launch) const;
  /// Store what the read-only attributes show.
  void show(const std::vector<std::int64_t>& uids);
  void* operand_pointer(const Operand& operand, const VariantPackDescriptor& pack) const;

  std::shared_ptr<GraphDescriptor> graph_;  // null where restored
  const Engine* engine_ = nullptr;
  std::shared_ptr<const void> detail_;  // of the engine's proposal
  Built built_;
  mutable std::mutex guard_;
  mutable std::vector<std::shared_ptr<const Reshaped>> reshaped_;  // the last used first
};

}  // namespace hipdnn_port
