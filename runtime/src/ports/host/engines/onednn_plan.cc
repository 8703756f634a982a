#include "onednn_plan.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <stdexcept>
#include <thread>

#include "../threads/thread_team.h"
#include "packed_weights.h"

namespace hipdnn_port::onednn {

namespace {

constexpr std::int64_t kAlignment = 64;
/// How many executions of one plan run at once without waiting for each other.
constexpr std::size_t kConcurrentRuns = 64;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Everything one execution changes: memory objects and the argument lists that refer to them. Made when as many executions run at once
/// for the first time.
struct ArgumentSet {
  std::atomic<bool> busy{false};
  bool is_made = false;
  dnnl::stream stream;
  std::vector<dnnl::memory> memories;                   ///< one per slot
  std::vector<std::vector<dnnl_exec_arg_t>> arguments;  ///< one list per step
};

/// An argument set that is the calling thread's until the end of the scope.
class ArgumentLease {
 public:
  explicit ArgumentLease(std::span<ArgumentSet> sets) : set_(take(sets)) {}
  ~ArgumentLease() { set_.busy.store(false, std::memory_order_release); }
  ArgumentLease(const ArgumentLease&) = delete;
  ArgumentLease& operator=(const ArgumentLease&) = delete;
  ArgumentSet& set() const { return set_; }

 private:
  static ArgumentSet& take(std::span<ArgumentSet> sets) {
    // Threads that run at once come to use different sets first, of all plans alike, and do not meet at the first one's flag.
    thread_local std::size_t last = 0;
    for (;;) {
      for (std::size_t i = 0; i < sets.size(); ++i) {
        ArgumentSet& set = sets[(last + i) % sets.size()];
        if (set.busy.load(std::memory_order_relaxed) || set.busy.exchange(true, std::memory_order_acquire)) continue;
        last = (last + i) % sets.size();
        return set;
      }
      std::this_thread::yield();
    }
  }

  ArgumentSet& set_;
};

class OnednnPlan final : public Plan {
 public:
  OnednnPlan(std::vector<std::int64_t> uids, std::int64_t workspace_bytes, int threads, std::vector<Slot> slots, std::vector<Step> steps,
             std::vector<std::shared_ptr<void>> owned, std::string description)
      : threads_(threads),
        slots_(std::move(slots)),
        steps_(std::move(steps)),
        owned_(std::move(owned)),
        description_(std::move(description)) {
    uids_ = std::move(uids);
    workspace_bytes_ = workspace_bytes;
    make(sets_.front());
  }

  std::string describe() const override { return description_; }

  void execute(void* const* pointers, void* workspace, const Launch& launch) const override {
    const int threads = launch.threads;
    const int wanted = std::clamp(threads, 1, threads_);
    if (default_parts() != wanted) set_default_parts(wanted);
    const ArgumentLease lease(sets_);
    ArgumentSet& set = lease.set();
    if (!set.is_made) make(set);
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      const Slot& slot = slots_[s];
      if (slot.source == Source::kOwned) continue;
      void* address = slot.source == Source::kOperand ? pointers[slot.index] : static_cast<std::byte*>(workspace) + slot.index;
      dnnl_memory_set_data_handle(set.memories[s].get(), address);
    }
    for (std::size_t s = 0; s < steps_.size(); ++s) run(steps_[s], set, s);
  }

 private:
  static void run(const Step& step, const ArgumentSet& set, std::size_t index) {
    const std::vector<dnnl_exec_arg_t>& arguments = set.arguments[index];
    if (step.primitive) {
      dnnl::error::wrap_c_api(
          dnnl_primitive_execute(step.primitive.get(), set.stream.get(), static_cast<int>(arguments.size()), arguments.data()),
          "oneDNN could not run a primitive");
      return;
    }
    const dnnl::memory& memory = set.memories[static_cast<std::size_t>(step.arguments[0].second)];
    std::memset(memory.get_data_handle(), 0, memory.get_desc().get_size());
  }

  void make(ArgumentSet& set) const {
    set.stream = dnnl::stream(cpu_engine());
    set.memories.clear();
    set.arguments.clear();
    for (const Slot& slot : slots_) {
      set.memories.emplace_back(slot.desc, cpu_engine(), slot.source == Source::kOwned ? slot.address : DNNL_MEMORY_NONE);
    }
    for (const Step& step : steps_) {
      std::vector<dnnl_exec_arg_t>& list = set.arguments.emplace_back();
      for (const auto& [argument, slot] : step.arguments) list.push_back({argument, set.memories[static_cast<std::size_t>(slot)].get()});
    }
    set.is_made = true;
  }

  int threads_;
  std::vector<Slot> slots_;
  std::vector<Step> steps_;
  std::vector<std::shared_ptr<void>> owned_;
  std::string description_;
  mutable std::array<ArgumentSet, kConcurrentRuns> sets_;
};

}  // namespace

ThreadCountScope::ThreadCountScope(int threads) : before_(default_parts()) { set_default_parts(threads); }

ThreadCountScope::~ThreadCountScope() { set_default_parts(before_); }

PlanBuilder::PlanBuilder(const Graph& graph, const PlanOptions& options)
    : graph_(graph), options_(options), threads_(std::max(options.threads, 1)) {
  for (const Tensor& t : graph.tensors) {
    if (t.has_pointer()) uids_.push_back(t.uid);
  }
}

dnnl::primitive_attr PlanBuilder::attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return attributes;
}

int PlanBuilder::add(Slot slot) {
  slots_.push_back(std::move(slot));
  return static_cast<int>(slots_.size()) - 1;
}

int PlanBuilder::operand(int t, const dnnl::memory::desc& desc) {
  const auto position = std::find(uids_.begin(), uids_.end(), tensor(t).uid);
  if (position == uids_.end()) throw std::runtime_error("tensor " + describe(tensor(t)) + " has no pointer at execution");
  return add({desc, Source::kOperand, position - uids_.begin(), nullptr});
}

int PlanBuilder::baked(int t, const dnnl::memory::desc& desc) {
  const auto kept = std::make_shared<std::vector<std::byte>>(tensor(t).value.value());
  owned_.emplace_back(kept, kept->data());
  return add({desc, Source::kOwned, 0, kept->data()});
}

int PlanBuilder::number(std::int32_t value) {
  const auto kept = std::make_shared<std::int32_t>(value);
  owned_.push_back(kept);
  return add({memory_of({1}, dnnl::memory::data_type::s32, {1}), Source::kOwned, 0, kept.get()});
}

int PlanBuilder::scratch(const dnnl::memory::desc& desc) {
  const std::int64_t offset = workspace_bytes_;
  workspace_bytes_ += aligned(static_cast<std::int64_t>(desc.get_size()));
  return add({desc, Source::kWorkspace, offset, nullptr});
}

int PlanBuilder::packed(const void* from, const dnnl::memory::desc& stored, const dnnl::memory::desc& wanted) {
  const std::shared_ptr<void>& bytes = owned_.emplace_back(packed_weights(from, stored, wanted));
  return add({wanted, Source::kOwned, 0, bytes.get()});
}

int PlanBuilder::loaded(int t, const dnnl::memory::desc& stored, const dnnl::memory::desc& wanted) {
  if (stored == wanted) return operand(t, stored);
  const auto constant = options_.constants.find(tensor(t).uid);
  if (constant != options_.constants.end()) return packed(constant->second, stored, wanted);
  const int to = scratch(wanted);
  copy(operand(t, stored), to);
  return to;
}

int PlanBuilder::result(int t, const dnnl::memory::desc& stored, const dnnl::memory::desc& computed) {
  return stored == computed ? operand(t, stored) : scratch(computed);
}

void PlanBuilder::store(int t, const dnnl::memory::desc& stored, int computed_slot) {
  if (slots_[static_cast<std::size_t>(computed_slot)].source == Source::kOperand) return;
  copy(computed_slot, operand(t, stored));
}

int PlanBuilder::view(int slot, const dnnl::memory::desc& desc) {
  Slot seen = slots_[static_cast<std::size_t>(slot)];
  seen.desc = desc;
  return add(std::move(seen));
}

void PlanBuilder::zero(int slot) { steps_.push_back({dnnl::primitive(), {{DNNL_ARG_DST, slot}}}); }

void PlanBuilder::copy(int from, int to) {
  run(dnnl::reorder::primitive_desc(cpu_engine(), desc(from), cpu_engine(), desc(to), attributes()),
      {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

void PlanBuilder::run(const dnnl::primitive_desc_base& desc, std::vector<std::pair<int, int>> arguments) {
  const dnnl::memory::desc scratchpad = desc.scratchpad_desc();
  if (scratchpad.get_size() > 0) scratchpads_.emplace_back(steps_.size(), scratchpad);
  steps_.push_back({dnnl::primitive(desc.get()), std::move(arguments)});
}

std::unique_ptr<Plan> PlanBuilder::finish(std::string description) {
  // Steps run one after the other, so their scratchpads share one place at the end of the workspace.
  std::int64_t largest = 0;
  for (const auto& [step, desc] : scratchpads_) {
    steps_[step].arguments.emplace_back(DNNL_ARG_SCRATCHPAD, add({desc, Source::kWorkspace, workspace_bytes_, nullptr}));
    largest = std::max(largest, aligned(static_cast<std::int64_t>(desc.get_size())));
  }
  return std::make_unique<OnednnPlan>(std::move(uids_), workspace_bytes_ + largest, std::max(options_.threads, 1), std::move(slots_),
                                      std::move(steps_), std::move(owned_), std::move(description));
}

}  // namespace hipdnn_port::onednn
