#include "widened_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "packed_memory.h"
#include "rowwise_engine.h"

namespace hipdnn_port {

namespace {

bool has_eight_bits(const Tensor& tensor) { return tensor.dtype == HIPDNN_DATA_FP8_E4M3 || tensor.dtype == HIPDNN_DATA_FP8_E5M2; }

bool widens(const Tensor& tensor) { return tensor.dtype == HIPDNN_DATA_HALF || tensor.dtype == HIPDNN_DATA_BFLOAT16 || has_eight_bits(tensor); }

/// One copy of each element: a dimension of stride 0 is one long.
std::vector<std::int64_t> stored_dims(const Tensor& tensor) {
  std::vector<std::int64_t> dims = tensor.dims;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (tensor.strides[d] == 0) dims[d] = 1;
  }
  return dims;
}

/// Strides without gaps, in the same order; those of 0 stay.
std::vector<std::int64_t> dense_strides(const Tensor& tensor) {
  std::vector<std::size_t> order(tensor.dims.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return tensor.strides[a] > tensor.strides[b]; });
  std::vector<std::int64_t> strides(tensor.dims.size(), 0);
  std::int64_t stride = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    if (tensor.strides[*d] == 0) continue;
    strides[*d] = stride;
    stride *= tensor.dims[*d];
  }
  return strides;
}

Tensor widened(const Tensor& tensor) {
  Tensor wide = tensor;
  wide.dtype = HIPDNN_DATA_FLOAT;
  wide.strides = dense_strides(tensor);
  wide.byte_alignment = kLineBytes;
  if (tensor.value) {
    const auto value = static_cast<float>(tensor.scalar());
    wide.value->resize(sizeof value);
    std::memcpy(wide.value->data(), &value, sizeof value);
  }
  return wide;
}

std::int64_t bytes_of(const Tensor& wide) {
  const std::vector<std::int64_t> dims = stored_dims(wide);
  return std::accumulate(dims.begin(), dims.end(), static_cast<std::int64_t>(sizeof(float)), std::multiplies<>());
}

/// One node that copies `from` to `to`, which differ in type and strides. Its pointers come in that order.
Graph conversion(const Tensor& from, const Tensor& to) {
  Graph graph;
  graph.name = "conversion";
  for (const Tensor* tensor : {&from, &to}) {
    Tensor& operand = graph.tensors.emplace_back(*tensor);
    operand.dims = stored_dims(*tensor);
    operand.uid = static_cast<std::int64_t>(graph.tensors.size());
  }
  Node node{.type = HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, .name = from.name, .tensors = {}, .attributes = {}};
  node.attributes[HIPDNN_ATTR_POINTWISE_MODE] = std::vector<std::int64_t>{HIPDNN_POINTWISE_IDENTITY};
  node.tensors[HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT] = {0};
  node.tensors[HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT] = {1};
  graph.nodes.push_back(std::move(node));
  return graph;
}

bool is_written(const Graph& graph, std::size_t t) { return graph.producer(static_cast<int>(t)) >= 0; }

Graph conversion_of(const Graph& graph, std::size_t t) {
  const Tensor& tensor = graph.tensors[t];
  const Tensor wide = widened(tensor);
  return is_written(graph, t) ? conversion(wide, tensor) : conversion(tensor, wide);
}

/// Runs a conversion once, at plan time; returns the memory it filled.
std::shared_ptr<void> converted(const Plan& conversion, const void* from, const Tensor& wide, int threads) {
  struct alignas(kLineBytes) Line {
    std::byte bytes[kLineBytes];
  };
  std::vector<Line> workspace(static_cast<std::size_t>(whole_lines(conversion.workspace_bytes()) / kLineBytes));
  std::shared_ptr<void> memory = packed_memory(static_cast<std::size_t>(bytes_of(wide)));
  void* const pointers[] = {const_cast<void*>(from), memory.get()};  // a source is only read
  conversion.execute(pointers, workspace.data(), threads);
  return memory;
}

/// How the plan in float32 gets one of its pointers.
struct Operand {
  std::size_t index = 0;              ///< in uids(): the caller's pointer
  std::optional<std::int64_t> offset;  ///< in the workspace, for an operand that is converted at execution
  std::shared_ptr<void> constant;     ///< memory of the plan, for one that was converted when the plan was built
  std::unique_ptr<Plan> before;       ///< fills the workspace from the caller's memory
  std::unique_ptr<Plan> after;        ///< and the other way round
};

/// The workspace holds the inner plan's pointers, then the operands in float32, then what the plans that run one by one need.
class WidenedPlan final : public Plan {
 public:
  WidenedPlan(const Graph& graph, const PlanOptions& options, const WidePlanBuild& build) {
    PlanOptions wide_options{.constants = {}, .threads = options.threads};
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
      const Tensor& tensor = graph.tensors[t];
      if (!tensor.has_pointer()) continue;
      uids_.push_back(tensor.uid);
      const auto constant = options.constants.find(tensor.uid);
      if (constant != options.constants.end()) wide_options.constants.insert(*constant);
    }
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) widen_constant(graph, t, wide_options);
    const Graph wide = hipdnn_port::widened(graph);
    inner_ = build(wide, wide_options);
    workspace_bytes_ = whole_lines(static_cast<std::int64_t>(inner_->uids().size() * sizeof(void*)));
    for (const std::int64_t uid : inner_->uids()) add_operand(graph, uid, options.threads);
    shared_offset_ = workspace_bytes_;
    workspace_bytes_ += largest_workspace();
  }

  std::string describe() const override { return inner_->describe() + " through f32"; }

  void execute(void* const* pointers, void* workspace, const Launch& launch) const override {
    const int threads = launch.threads;
    auto* const bytes = static_cast<std::byte*>(workspace);
    auto* const wide = static_cast<void**>(workspace);
    void* const shared = bytes + shared_offset_;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const Operand& operand = operands_[i];
      wide[i] = operand.constant != nullptr ? operand.constant.get() : operand.offset ? bytes + *operand.offset : pointers[operand.index];
    }
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].before != nullptr) convert(*operands_[i].before, pointers[operands_[i].index], wide[i], shared, threads);
    }
    inner_->execute(wide, shared, threads);
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i].after != nullptr) convert(*operands_[i].after, wide[i], pointers[operands_[i].index], shared, threads);
    }
  }

 private:
  static void convert(const Plan& conversion, void* from, void* to, void* workspace, int threads) {
    void* const pointers[] = {from, to};
    conversion.execute(pointers, workspace, threads);
  }

  void widen_constant(const Graph& graph, std::size_t t, PlanOptions& options) {
    const Tensor& tensor = graph.tensors[t];
    const auto constant = options.constants.find(tensor.uid);
    if (!widens(tensor) || constant == options.constants.end()) return;
    const std::unique_ptr<Plan> plan = rowwise_engine().build(conversion_of(graph, t), {.constants = {}, .threads = options.threads});
    const std::shared_ptr<void>& memory = constants_[tensor.uid] = converted(*plan, constant->second, widened(tensor), options.threads);
    constant->second = memory.get();
  }

  void add_operand(const Graph& graph, std::int64_t uid, int threads) {
    const auto found = std::ranges::find(graph.tensors, uid, &Tensor::uid);
    const auto t = static_cast<std::size_t>(found - graph.tensors.begin());
    Operand& operand = operands_.emplace_back();
    operand.index = static_cast<std::size_t>(std::ranges::find(uids_, uid) - uids_.begin());
    if (!widens(*found)) return;
    if (const auto constant = constants_.find(uid); constant != constants_.end()) {
      operand.constant = constant->second;
      return;
    }
    operand.offset = workspace_bytes_;
    workspace_bytes_ += whole_lines(bytes_of(widened(*found)));
    std::unique_ptr<Plan>& plan = is_written(graph, t) ? operand.after : operand.before;
    plan = rowwise_engine().build(conversion_of(graph, t), {.constants = {}, .threads = threads});
  }

  std::int64_t largest_workspace() const {
    std::int64_t largest = inner_->workspace_bytes();
    for (const Operand& operand : operands_) {
      for (const Plan* plan : {operand.before.get(), operand.after.get()}) {
        if (plan != nullptr) largest = std::max(largest, plan->workspace_bytes());
      }
    }
    return largest;
  }

  std::map<std::int64_t, std::shared_ptr<void>> constants_;
  std::unique_ptr<Plan> inner_;
  std::vector<Operand> operands_;  ///< one per pointer of inner_
  std::int64_t shared_offset_ = 0;
};

}  // namespace

bool has_narrow_tensors(const Graph& graph) { return std::ranges::any_of(graph.tensors, widens); }

bool rounds_inside(const Graph& graph) {
  return std::ranges::any_of(graph.tensors, [](const Tensor& tensor) { return tensor.is_virtual && has_eight_bits(tensor); });
}

Graph widened(const Graph& graph) {
  Graph wide = graph;
  for (Tensor& tensor : wide.tensors) {
    if (widens(tensor)) tensor = widened(tensor);
  }
  return wide;
}

std::optional<std::string> refuses_conversions(const Graph& graph) {
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    if (!widens(graph.tensors[t]) || !graph.tensors[t].has_pointer()) continue;
    if (const auto reason = rowwise_engine().refuses(conversion_of(graph, t))) {
      return "tensor " + describe(graph.tensors[t]) + " cannot be converted to float32: " + *reason;
    }
  }
  return std::nullopt;
}

std::unique_ptr<Plan> build_widened(const Graph& graph, const PlanOptions& options, const WidePlanBuild& build) {
  return std::make_unique<WidenedPlan>(graph, options, build);
}

}  // namespace hipdnn_port
