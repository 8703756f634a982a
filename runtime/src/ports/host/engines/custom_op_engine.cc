// HOST_CUSTOM_OP_ENGINE: one custom operation whose ID a user's library has registered through hipdnnHostRegisterCustomOp_ext.
#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>

#include "../hipdnn_host.h"
#include "frontend/engine.h"
#include "frontend/export.h"
#include "frontend/status.h"
#include "rowwise_engine.h"

namespace hipdnn_port {
namespace {

/// Tensors of one call live on the stack while it runs, so that executing allocates nothing.
constexpr std::size_t kMostTensors = 64;

/// Operations of the process by ID. Thread-safe.
class Registry {
 public:
  void set(const std::string& id, const hipdnnHostCustomOp_ext_t* operation) {
    const std::lock_guard lock(mutex_);
    if (operation == nullptr) {
      operations_.erase(id);
    } else {
      operations_[id] = *operation;
    }
  }

  std::optional<hipdnnHostCustomOp_ext_t> find(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = operations_.find(id);
    return found == operations_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, hipdnnHostCustomOp_ext_t> operations_;
};

Registry& registry() {
  static Registry everything;
  return everything;
}

const std::string& id_of(const Node& node) { return std::get<std::string>(node.attributes.at(HIPDNN_ATTR_OPERATION_CUSTOM_OP_ID_EXT)); }

class CustomOpPlan final : public Plan {
 public:
  CustomOpPlan(const Graph& graph, const hipdnnHostCustomOp_ext_t& operation) : operation_(operation), id_(id_of(graph.nodes[0])) {
    const Node& node = graph.nodes[0];
    uids_ = pointer_uids(graph);
    for (const auto name : {HIPDNN_ATTR_OPERATION_CUSTOM_OP_INPUTS_EXT, HIPDNN_ATTR_OPERATION_CUSTOM_OP_OUTPUTS_EXT}) {
      for (const int t : node.tensors.at(name)) tensors_.push_back(graph.tensor(t));
    }
    input_count_ = node.tensors.at(HIPDNN_ATTR_OPERATION_CUSTOM_OP_INPUTS_EXT).size();
    if (node.has(HIPDNN_ATTR_OPERATION_CUSTOM_OP_DATA_EXT)) {
      attributes_ = std::get<std::string>(node.attributes.at(HIPDNN_ATTR_OPERATION_CUSTOM_OP_DATA_EXT));
    }
  }

  std::string describe() const override { return "custom operation '" + id_ + "'"; }

  /// The operation's own reason, or the engine's.
  std::optional<std::string> refuses() const {
    if (tensors_.size() > kMostTensors) return text(tensors_.size(), " tensors, at most ", kMostTensors);
    if (operation_.refuses == nullptr) return std::nullopt;
    std::array<hipdnnHostTensor_ext_t, kMostTensors> seen;  // NOLINT: filled up to tensors_.size() by call()
    const hipdnnHostCustomCall_ext_t made = call(seen, nullptr);
    const char* const reason = operation_.refuses(&made, operation_.user);
    if (reason == nullptr) return std::nullopt;
    return text("custom operation '", id_, "': ", reason);
  }

  void execute(void* const* pointers, void*, const Launch& launch) const override {
    const int threads = launch.threads;
    std::array<hipdnnHostTensor_ext_t, kMostTensors> seen;  // NOLINT: filled up to tensors_.size() by call()
    const hipdnnHostCustomCall_ext_t made = call(seen, pointers);
    const int status = operation_.execute(&made, threads, operation_.user);
    if (status != 0) fail(HIPDNN_STATUS_EXECUTION_FAILED, "custom operation '", id_, "' returned ", status);
  }

 private:
  hipdnnHostCustomCall_ext_t call(std::array<hipdnnHostTensor_ext_t, kMostTensors>& seen, void* const* pointers) const {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Tensor& t = tensors_[i];
      seen[i] = {t.dtype, t.rank(), t.dims.data(), t.strides.data(), pointers == nullptr ? nullptr : data_of(t, pointers)};
    }
    return {seen.data(), input_count_, seen.data() + input_count_, tensors_.size() - input_count_, attributes_.data(), attributes_.size()};
  }

  void* data_of(const Tensor& tensor, void* const* pointers) const {
    if (tensor.value) return const_cast<std::byte*>(tensor.value->data());  // operations only read their inputs
    return pointers[std::ranges::find(uids_, tensor.uid) - uids_.begin()];
  }

  hipdnnHostCustomOp_ext_t operation_;
  std::string id_;
  std::string attributes_;
  std::vector<Tensor> tensors_;  ///< inputs, then outputs
  std::size_t input_count_ = 0;
};

std::unique_ptr<CustomOpPlan> make(const Graph& graph) {
  if (graph.nodes.size() != 1 || graph.nodes[0].type != HIPDNN_BACKEND_OPERATION_CUSTOM_OP_DESCRIPTOR_EXT) {
    throw std::runtime_error("takes one custom operation");
  }
  const std::string& id = id_of(graph.nodes[0]);
  const auto operation = registry().find(id);
  if (!operation) throw std::runtime_error(text("no custom operation '", id, "' is registered; see hipdnnHostRegisterCustomOp_ext"));
  auto plan = std::make_unique<CustomOpPlan>(graph, *operation);
  if (const auto reason = plan->refuses()) throw std::runtime_error(*reason);
  return plan;
}

class CustomOpEngine final : public Engine {
 public:
  std::string_view name() const override { return "HOST_CUSTOM_OP_ENGINE"; }

  std::optional<std::string> refuses(const Graph& graph) const override {
    try {
      make(graph);
    } catch (const std::runtime_error& reason) {
      return reason.what();
    }
    return std::nullopt;
  }

  std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions&) const override { return make(graph); }
};

}  // namespace

const Engine& custom_op_engine() {
  static const CustomOpEngine engine;
  return engine;
}

}  // namespace hipdnn_port

extern "C" HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnHostRegisterCustomOp_ext(const char* id, const hipdnnHostCustomOp_ext_t* operation) {
  using namespace hipdnn_port;
  return guard(__func__, [&] {
    const std::string name = &require_argument(id, "id");
    if (operation != nullptr && operation->execute == nullptr) fail(HIPDNN_STATUS_BAD_PARAM_NULL_POINTER, "operation->execute is null");
    registry().set(name, operation);
  });
}
