// The descriptors of execution: plan and variant pack.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor.h"
#include "engine.h"
#include "engine_descriptors.h"
#include "handle.h"

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

 protected:
  void on_finalize() override;

 private:
  std::vector<Binding> bindings_;
  void* workspace_ = nullptr;
};

class ExecutionPlanDescriptor final : public Descriptor {
 public:
  using Descriptor::Descriptor;
  /// Runs the plan on the calling thread; any number of threads may, each with its own pointers. Allocates and locks nothing.
  /// BAD_PARAM names the uid whose pointer is missing, null or not aligned as its tensor promises.
  void execute(const VariantPackDescriptor& pack, const Launch& launch) const;
  const Plan& plan() const { return *plan_; }
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

  Constants read_constants(const Graph& graph) const;
  void resolve_operands(const Graph& graph, const Constants& constants);
  /// Store what the read-only attributes show.
  void show(const std::vector<std::int64_t>& uids);
  void* operand_pointer(const Operand& operand, const VariantPackDescriptor& pack) const;

  const Engine* engine_ = nullptr;
  std::unique_ptr<const Plan> plan_;
  std::vector<Operand> operands_;  // in the plan's order, then those of the graph that the plan does not read
};

}  // namespace hipdnn_port
