#include "onednn_fusion.h"

#include <algorithm>

namespace hipdnn_host::onednn {

namespace {

/// A float vector along `axis` of the result, contiguous and one in all other dimensions.
bool is_bias(const Tensor& operand, const Tensor& result, std::size_t axis) {
  if (operand.dtype != HIPDNN_DATA_FLOAT || operand.value) return false;
  const Tensor full = broadcast_view(operand, result.dims.size());
  for (std::size_t d = 0; d < full.dims.size(); ++d) {
    if (full.dims[d] != (d == axis ? result.dims[d] : 1)) return false;
  }
  return full.dims[axis] == 1 || full.strides[axis] == 1;
}

}  // namespace

BiasAndSteps split_bias(const Graph& graph, const Tensor& result, std::size_t axis, std::vector<EpilogueStep> steps) {
  // Additions commute, so any of the leading ones may go first, where the bias argument is added.
  for (auto step = steps.begin(); step != steps.end() && step->algorithm == dnnl::algorithm::binary_add; ++step) {
    if (!is_bias(graph.tensors[static_cast<std::size_t>(step->operand)], result, axis)) continue;
    const int bias = step->operand;
    steps.erase(step);
    return {bias, std::move(steps)};
  }
  return {std::nullopt, std::move(steps)};
}

PostOperations post_operations(const std::vector<EpilogueStep>& steps, const OperandView& view,
                               const dnnl::memory::desc& result) {
  PostOperations post;
  for (const EpilogueStep& step : steps) {
    if (!step.is_binary()) {
      post.operations.append_eltwise(step.algorithm, step.alpha, step.beta);
      continue;
    }
    const dnnl::memory::desc stored = view(step.operand);
    dnnl::memory::desc wanted = stored;
    // Generated code walks a full operand in step with the result, so the two need one layout.
    if (stored.get_dims() == result.get_dims() && stored.get_strides() != result.get_strides()) {
      wanted = memory_of(result.get_dims(), stored.get_data_type(), result.get_strides());
    }
    const int argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(post.operations.len()) | DNNL_ARG_SRC_1;
    post.operations.append_binary(step.algorithm, wanted);
    post.operands.push_back({argument, step.operand, stored, wanted});
  }
  return post;
}

bool is_reference(const std::string& implementation) { return implementation.find("ref") != std::string::npos; }

void load_operands(PlanBuilder& builder, const PostOperations& post, std::vector<std::pair<int, int>>& arguments) {
  for (const PostOperations::Operand& operand : post.operands) {
    arguments.emplace_back(operand.argument, builder.loaded(operand.tensor, operand.stored, operand.wanted));
  }
}

}  // namespace hipdnn_host::onednn
