// Builds a plan with its engine, and runs it on the pointers of a variant pack.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "log.h"
#include "names.h"
#include "plan_descriptors.h"
#include "status.h"

namespace hipdnn_port {
namespace {

constexpr std::uintptr_t workspace_alignment = 64;
/// Shapes whose plans a plan keeps.
constexpr std::size_t most_reshaped = 16;

const Tensor& tensor_of(const Graph& graph, std::int64_t uid) {
  const auto found = std::ranges::find(graph.tensors, uid, &Tensor::uid);
  if (found == graph.tensors.end() || !found->has_pointer()) {
    fail(HIPDNN_STATUS_INTERNAL_ERROR, "the plan wants a pointer for uid ", uid, ", which is no operand of its graph");
  }
  return *found;
}

std::size_t rounded_up(std::int64_t bytes) {
  return (static_cast<std::size_t>(bytes) + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

std::unique_ptr<const Plan> build_plan(const Engine& engine, const Graph& graph, const PlanOptions& options) {
  try {
    return engine.build(graph, options);
  } catch (const StatusError&) {
    throw;
  } catch (const std::runtime_error& reason) {
    fail(HIPDNN_STATUS_NOT_SUPPORTED, engine.name(), " could not build a plan for graph '", graph.name, "': ", reason.what());
  }
}

}  // namespace

Constants ExecutionPlanDescriptor::read_constants(const Graph& graph) const {
  constexpr int uids_name = HIPDNN_ATTR_EXECUTION_PLAN_CONSTANT_UIDS_MLIR_EXT;
  constexpr int pointers_name = HIPDNN_ATTR_EXECUTION_PLAN_CONSTANT_POINTERS_MLIR_EXT;
  const std::vector<std::int64_t> uids = has(uids_name) ? integers(uids_name) : std::vector<std::int64_t>{};
  const std::vector<void*> given = has(pointers_name) ? pointers(pointers_name) : std::vector<void*>{};
  if (uids.size() != given.size()) {
    fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(uids_name), " has ", uids.size(), " elements, ", attribute_name(pointers_name), " has ",
         given.size(), "; expected as many");
  }
  Constants constants;
  for (std::size_t i = 0; i < uids.size(); ++i) {
    const auto tensor = std::ranges::find(graph.tensors, uids[i], &Tensor::uid);
    if (tensor == graph.tensors.end() || !tensor->has_pointer()) {
      fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(uids_name), ": uid ", uids[i], " is no operand of the graph");
    }
    if (graph.producer(static_cast<int>(tensor - graph.tensors.begin())) >= 0) {
      fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(uids_name), ": uid ", uids[i], " is written by the graph");
    }
    if (given[i] == nullptr) fail(HIPDNN_STATUS_BAD_PARAM_NULL_POINTER, attribute_name(pointers_name), ": the pointer of uid ", uids[i], " is null");
    if (!constants.emplace(uids[i], given[i]).second) fail(HIPDNN_STATUS_BAD_PARAM, attribute_name(uids_name), ": uid ", uids[i], " appears twice");
  }
  return constants;
}

ExecutionPlanDescriptor::Built ExecutionPlanDescriptor::build(const Graph& graph) const {
  const HandleState& handle = graph_->handle();
  const PlanOptions options{.constants = read_constants(graph), .threads = handle.threads.load(), .vendor_handle = handle.vendor, .detail = detail_};
  Built built{.plan = build_plan(*engine_, graph, options), .operands = {}};
  std::vector<std::int64_t> uids = built.plan->uids();
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.has_pointer() && std::ranges::find(uids, tensor.uid) == uids.end()) uids.push_back(tensor.uid);
  }
  if (uids.size() > most_operands) {
    fail(HIPDNN_STATUS_NOT_SUPPORTED, "graph '", graph.name, "' has ", uids.size(), " operands, at most ", most_operands, " are supported");
  }
  for (const std::int64_t uid : uids) {
    const auto constant = options.constants.find(uid);
    built.operands.push_back({.uid = uid,
                              .alignment_mask = static_cast<std::uintptr_t>(tensor_of(graph, uid).byte_alignment) - 1,
                              .constant = constant == options.constants.end() ? nullptr : const_cast<void*>(constant->second)});
  }
  return built;
}

void ExecutionPlanDescriptor::on_finalize() {
  const auto configuration = descriptor<EngineConfigDescriptor>(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  engine_ = &configuration->engine()->engine();
  graph_ = configuration->engine()->graph();
  detail_ = configuration->detail();
  const Graph& graph = *graph_->graph();
  built_ = build(graph);

  std::vector<std::int64_t> all_uids;
  std::ranges::transform(graph.tensors, std::back_inserter(all_uids), &Tensor::uid);
  show(all_uids);
  if (is_logged(HIPDNN_SEV_INFO)) log(HIPDNN_SEV_INFO, text("plan for graph '", graph.name, "': ", plan().describe()));
}

void ExecutionPlanDescriptor::show(const std::vector<std::int64_t>& uids) {
  store_integers(HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, HIPDNN_TYPE_INT64, {plan().workspace_bytes()});
  store_integers(HIPDNN_ATTR_EXECUTION_PLAN_TENSOR_UIDS_EXT, HIPDNN_TYPE_INT64, uids);
  store_integers(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_GLOBAL_INDEX_EXT, HIPDNN_TYPE_INT64, {engine_id(engine_->name())});
  store_integers(HIPDNN_ATTR_EXECUTION_PLAN_IS_OVERRIDE_SHAPE_ENABLED_EXT, HIPDNN_TYPE_BOOLEAN, {graph_ && graph_->takes_overrides()});
}

void* ExecutionPlanDescriptor::operand_pointer(const Operand& operand, const VariantPackDescriptor& pack) const {
  const auto& bindings = pack.bindings();
  const auto found = std::ranges::lower_bound(bindings, operand.uid, {}, &VariantPackDescriptor::Binding::uid);
  const bool is_bound = found != bindings.end() && found->uid == operand.uid;
  if (!is_bound && operand.constant != nullptr) return operand.constant;
  if (!is_bound) fail(HIPDNN_STATUS_BAD_PARAM, "the variant pack has no pointer for uid ", operand.uid);
  if (found->pointer == nullptr) fail(HIPDNN_STATUS_BAD_PARAM_NULL_POINTER, "the variant pack's pointer for uid ", operand.uid, " is null");
  if ((reinterpret_cast<std::uintptr_t>(found->pointer) & operand.alignment_mask) != 0) {
    fail(HIPDNN_STATUS_BAD_PARAM, "the variant pack's pointer for uid ", operand.uid, " (", found->pointer, ") must be a multiple of ",
         operand.alignment_mask + 1, " bytes, as its tensor says");
  }
  return found->pointer;
}

std::shared_ptr<const ExecutionPlanDescriptor::Reshaped> ExecutionPlanDescriptor::at(const std::vector<Override>& overrides) const {
  if (!graph_ || !graph_->takes_overrides()) fail(HIPDNN_STATUS_NOT_SUPPORTED, "the plan was built without override shapes");
  const std::scoped_lock lock(guard_);
  const auto known = std::ranges::find(reshaped_, overrides, &Reshaped::overrides);
  if (known != reshaped_.end()) {
    std::rotate(reshaped_.begin(), known, known + 1);
    return reshaped_.front();
  }
  const std::shared_ptr<GraphDescriptor> graph = at_shapes(*graph_, overrides);
  if (const auto reason = engine_->refuses(*graph->graph())) {
    fail(HIPDNN_STATUS_NOT_SUPPORTED, engine_->name(), " does not take the graph at the shapes of the variant pack: ", *reason);
  }
  if (reshaped_.size() == most_reshaped) reshaped_.pop_back();
  reshaped_.insert(reshaped_.begin(), std::make_shared<const Reshaped>(Reshaped{overrides, build(*graph->graph())}));
  return reshaped_.front();
}

void ExecutionPlanDescriptor::execute(const VariantPackDescriptor& pack, const Launch& launch) const {
  if (pack.overrides().empty()) return run(built_, pack, pack.workspace(), launch);
  const std::shared_ptr<const Reshaped> reshaped = at(pack.overrides());
  // The caller's workspace is that of the graph's own shapes. An engine may need more for others.
  const std::int64_t needed = reshaped->built.plan->workspace_bytes();
  if (needed <= plan().workspace_bytes()) return run(reshaped->built, pack, pack.workspace(), launch);
  const std::unique_ptr<void, decltype(&std::free)> own(std::aligned_alloc(workspace_alignment, rounded_up(needed)), &std::free);
  if (!own) fail(HIPDNN_STATUS_ALLOC_FAILED, "no memory for a workspace of ", needed, " bytes");
  run(reshaped->built, pack, own.get(), launch);
}

void ExecutionPlanDescriptor::run(const Built& built, const VariantPackDescriptor& pack, void* workspace, const Launch& launch) const {
  if (built.plan->workspace_bytes() > 0) {
    if (workspace == nullptr) {
      fail(HIPDNN_STATUS_BAD_PARAM_NULL_POINTER, "the plan needs a workspace of ", built.plan->workspace_bytes(),
           " bytes, the variant pack has none");
    }
    if (reinterpret_cast<std::uintptr_t>(workspace) % workspace_alignment != 0) {
      fail(HIPDNN_STATUS_BAD_PARAM, "the workspace (", workspace, ") must be a multiple of ", workspace_alignment, " bytes");
    }
  }
  std::array<void*, most_operands> resolved;  // NOLINT: filled up to as many as there are before use
  for (std::size_t i = 0; i < built.operands.size(); ++i) resolved[i] = operand_pointer(built.operands[i], pack);
  built.plan->execute(resolved.data(), workspace, launch);
}

}  // namespace hipdnn_port
