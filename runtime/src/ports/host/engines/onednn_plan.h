// A plan made of oneDNN primitives: memory objects prepared once, pointers filled in at execution.
#pragma once

#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "frontend/engine.h"
#include "onednn_memory.h"

namespace hipdnn_port::onednn {

/// Sets the number of threads oneDNN uses for the calling thread for as long as the object lives.
class ThreadCountScope {
 public:
  explicit ThreadCountScope(int threads);
  ~ThreadCountScope();
  ThreadCountScope(const ThreadCountScope&) = delete;
  ThreadCountScope& operator=(const ThreadCountScope&) = delete;

 private:
  int before_;
};

/// Where a slot's address comes from.
enum class Source {
  kOperand,    ///< the caller's pointer at `index` of Plan::uids()
  kWorkspace,  ///< the caller's workspace, `index` bytes in
  kOwned,      ///< memory of the plan or a constant of the caller's: `address`
};

/// One piece of memory that primitives of a plan read or write. Several slots may see one operand in different shapes.
struct Slot {
  dnnl::memory::desc desc;
  Source source = Source::kOperand;
  std::int64_t index = 0;
  void* address = nullptr;
};

/// One primitive with the slots it works on, or, where `primitive` is empty, zeros written to the slot of the only argument.
struct Step {
  dnnl::primitive primitive;
  std::vector<std::pair<int, int>> arguments;  ///< (DNNL_ARG_..., slot)
};

/// Puts a plan together. Not thread-safe: one builder per plan, on the stack of Engine::build, which it sets the number of oneDNN's threads for.
class PlanBuilder {
 public:
  PlanBuilder(const Graph& graph, const PlanOptions& options);

  const Graph& graph() const { return graph_; }
  const Tensor& tensor(int t) const { return graph_.tensor(t); }
  const dnnl::memory::desc& desc(int slot) const { return slots_[static_cast<std::size_t>(slot)].desc; }

  /// The caller's memory of tensor `t`, seen as `desc`.
  int operand(int t, const dnnl::memory::desc& desc);
  /// The number of baked tensor `t`, kept by the plan.
  int baked(int t, const dnnl::memory::desc& desc);
  /// An integer, kept by the plan.
  int number(std::int32_t value);
  /// Memory in the workspace.
  int scratch(const dnnl::memory::desc& desc);
  /// Tensor `t`, stored as `stored`, in the form `wanted`: itself where they are equal, packed now where it is constant, else by a step.
  int loaded(int t, const dnnl::memory::desc& stored, const dnnl::memory::desc& wanted);
  /// A slot to compute `computed` into; `store` later copies it to tensor `t` where its memory, `stored`, has another form.
  int result(int t, const dnnl::memory::desc& stored, const dnnl::memory::desc& computed);
  void store(int t, const dnnl::memory::desc& stored, int computed_slot);

  /// The memory of a slot seen as another descriptor.
  int view(int slot, const dnnl::memory::desc& desc);

  void zero(int slot);
  void copy(int from, int to);
  /// Adds the primitive of a descriptor; its scratchpad goes to the workspace.
  void run(const dnnl::primitive_desc_base& desc, std::vector<std::pair<int, int>> arguments);

  std::unique_ptr<Plan> finish(std::string description);

  /// Attributes every primitive of a plan has: scratchpad in the caller's workspace, no silent loss of precision.
  static dnnl::primitive_attr attributes();

 private:
  int add(Slot slot);
  int packed(const void* from, const dnnl::memory::desc& stored, const dnnl::memory::desc& wanted);

  const Graph& graph_;
  const PlanOptions& options_;
  /// oneDNN divides the work of a primitive when it is created, among the threads of the creating thread.
  ThreadCountScope threads_;
  std::vector<std::int64_t> uids_;
  std::vector<Slot> slots_;
  std::vector<Step> steps_;
  std::vector<std::shared_ptr<void>> owned_;
  std::vector<std::pair<std::size_t, dnnl::memory::desc>> scratchpads_;  ///< (step, its scratchpad)
  std::int64_t workspace_bytes_ = 0;
};

}  // namespace hipdnn_port::onednn
