// Builds a plan with its engine, and runs it on the pointers of a variant pack.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "log.h"
#include "names.h"
#include "plan_descriptors.h"
#include "status.h"

namespace hipdnn_port {
namespace {

constexpr std::uintptr_t workspace_alignment = 64;

const Tensor& tensor_of(const Graph& graph, std::int64_t uid) {
  const auto found = std::ranges::find(graph.tensors, uid, &Tensor::uid);
  if (found == graph.tensors.end() || !found->has_pointer()) {
    fail(HIPDNN_STATUS_INTERNAL_ERROR, "the plan wants a pointer for uid ", uid, ", which is no operand of its graph");
  }
  return *found;
}

std::unique_ptr<const Plan> build(const Engine& engine, const Graph& graph, const PlanOptions& options) {
  try {
    return engine.build(graph, options);
  } catch (const StatusError&) {
    throw;
  } catch (const std::runtime_error& reason) {
    fail(HIPDNN_STATUS_NOT_SUPPORTED, engine.name(), " could not build a plan for ", describe(graph), ": ", reason.what());
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

void ExecutionPlanDescriptor::resolve_operands(const Graph& graph, const Constants& constants) {
  std::vector<std::int64_t> uids = plan_->uids();
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.has_pointer() && std::ranges::find(uids, tensor.uid) == uids.end()) uids.push_back(tensor.uid);
  }
  if (uids.size() > most_operands) {
    fail(HIPDNN_STATUS_NOT_SUPPORTED, "graph '", graph.name, "' has ", uids.size(), " operands, at most ", most_operands, " are supported");
  }
  operands_.clear();
  for (const std::int64_t uid : uids) {
    const auto constant = constants.find(uid);
    operands_.push_back({.uid = uid,
                         .alignment_mask = static_cast<std::uintptr_t>(tensor_of(graph, uid).byte_alignment) - 1,
                         .constant = constant == constants.end() ? nullptr : const_cast<void*>(constant->second)});
  }
}

void ExecutionPlanDescriptor::on_finalize() {
  const auto configuration = descriptor<EngineConfigDescriptor>(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  engine_ = &configuration->engine()->engine();
  const auto described = configuration->engine()->graph();
  const Graph& graph = *described->graph();
  const HandleState& handle = described->handle();
  const PlanOptions options{.constants = read_constants(graph), .threads = handle.threads.load(), .vendor_handle = handle.vendor,
                            .detail = configuration->detail()};
  plan_ = build(*engine_, graph, options);
  resolve_operands(graph, options.constants);

  std::vector<std::int64_t> all_uids;
  std::ranges::transform(graph.tensors, std::back_inserter(all_uids), &Tensor::uid);
  show(all_uids);
  if (is_logged(HIPDNN_SEV_INFO)) log(HIPDNN_SEV_INFO, text("plan for ", describe(graph), ": ", plan_->describe()));
}

void ExecutionPlanDescriptor::show(const std::vector<std::int64_t>& uids) {
  store_integers(HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, HIPDNN_TYPE_INT64, {plan_->workspace_bytes()});
  store_integers(HIPDNN_ATTR_EXECUTION_PLAN_TENSOR_UIDS_EXT, HIPDNN_TYPE_INT64, uids);
  store_integers(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_GLOBAL_INDEX_EXT, HIPDNN_TYPE_INT64, {engine_id(engine_->name())});
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

void ExecutionPlanDescriptor::execute(const VariantPackDescriptor& pack, const Launch& launch) const {
  void* const workspace = pack.workspace();
  if (plan_->workspace_bytes() > 0) {
    if (workspace == nullptr) {
      fail(HIPDNN_STATUS_BAD_PARAM_NULL_POINTER, "the plan needs a workspace of ", plan_->workspace_bytes(),
           " bytes, the variant pack has none");
    }
    if (reinterpret_cast<std::uintptr_t>(workspace) % workspace_alignment != 0) {
      fail(HIPDNN_STATUS_BAD_PARAM, "the workspace (", workspace, ") must be a multiple of ", workspace_alignment, " bytes");
    }
  }
  std::array<void*, most_operands> resolved;  // NOLINT: filled up to operands_.size() before use
  for (std::size_t i = 0; i < operands_.size(); ++i) resolved[i] = operand_pointer(operands_[i], pack);
  plan_->execute(resolved.data(), workspace, launch);
}

}  // namespace hipdnn_port
