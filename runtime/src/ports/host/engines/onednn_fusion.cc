#include "onednn_fusion.h"

#include <algorithm>

namespace hipdnn_port::onednn {

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

void load_operands(PlanBuilder& builder, const PostOperations& post, std::vector<std::pair<int, int>>& arguments) {
  for (const PostOperations::Operand& operand : post.operands) {
    arguments.emplace_back(operand.argument, builder.loaded(operand.tensor, operand.stored, operand.wanted));
  }
}

/// A binary step with the elementwise ones after it, as one primitive in place.
struct RestStep {
  std::vector<EpilogueStep> steps;
  PostOperations::Operand other;
  dnnl::binary::primitive_desc desc;
};

std::vector<RestStep> rest_steps(const std::vector<EpilogueStep>& steps, const OperandView& view, const dnnl::memory::desc& dst) {
  std::vector<RestStep> primitives;
  for (auto step = steps.begin(); step != steps.end();) {
    const auto next = std::find_if(step + 1, steps.end(), [](const EpilogueStep& s) { return s.is_binary(); });
    const PostOperations::Operand other = post_operations({*step}, view, dst).operands.front();
    dnnl::primitive_attr attributes = PlanBuilder::attributes();
    attributes.set_post_ops(post_operations({step + 1, next}, view, dst).operations);
    primitives.push_back({{step, next}, other, {cpu_engine(), step->algorithm, dst, other.wanted, dst, attributes}});
    step = next;
  }
  return primitives;
}

/// Runs steps in place on slot `result`; returns words for them.
std::string run_rest(PlanBuilder& builder, const std::vector<EpilogueStep>& steps, const OperandView& view, int result) {
  std::string text;
  for (const RestStep& rest : rest_steps(steps, view, builder.desc(result))) {
    builder.run(rest.desc, {{DNNL_ARG_SRC_0, result},
                            {DNNL_ARG_SRC_1, builder.loaded(rest.other.tensor, rest.other.stored, rest.other.wanted)},
                            {DNNL_ARG_DST, result}});
    text += "; " + std::string(rest.desc.impl_info_str()) + words(rest.steps);
  }
  return text;
}

}  // namespace

BiasAndSteps split_bias(const Graph& graph, const Tensor& result, std::size_t axis, std::vector<EpilogueStep> steps) {
  // Additions commute, so any of the leading ones may go first, where the bias argument is added.
  for (auto step = steps.begin(); step != steps.end() && step->algorithm == dnnl::algorithm::binary_add; ++step) {
    if (!is_bias(graph.tensor(step->operand), result, axis)) continue;
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
    } else if (stored.get_dims() != result.get_dims() && has_gaps(stored)) {
      // It counts elements of one that broadcasts, without regard to strides.
      wanted = memory_of(stored.get_dims(), stored.get_data_type(), plain_strides(stored.get_dims()));
    }
    const int argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(post.operations.len()) | DNNL_ARG_SRC_1;
    post.operations.append_binary(step.algorithm, wanted);
    post.operands.push_back({argument, step.operand, stored, wanted});
  }
  return post;
}

bool has_gaps(const dnnl::memory::desc& desc) {
  const auto dims = desc.get_dims();
  const auto strides = desc.get_strides();
  std::int64_t last = 0;
  std::int64_t count = 1;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    last += (dims[d] - 1) * strides[d];
    count *= dims[d];
  }
  return last + 1 != count;
}

bool is_reference(const std::string& implementation) { return implementation.find("ref") != std::string::npos; }

bool is_direct(const std::string& implementation) {
  return !implementation.empty() && !is_reference(implementation) && implementation.find("gemm") == std::string::npos;
}

FusedPrimitive better(FusedPrimitive first, FusedPrimitive second) {
  const auto rank = [](const FusedPrimitive& p) {
    if (p.implementation.empty()) return 0;
    if (is_reference(p.implementation)) return 1;
    return is_direct(p.implementation) ? 3 : 2;
  };
  return rank(second) > rank(first) ? second : first;
}

FusedPrimitive fuse_longest(const std::vector<EpilogueStep>& steps,
                            const std::function<FusedPrimitive(const std::vector<EpilogueStep>&)>& choose) {
  FusedPrimitive whole = choose(steps);
  whole.fused = steps;
  if (!whole.implementation.empty() && !is_reference(whole.implementation)) return whole;
  for (std::size_t count = steps.size(); count-- > 0;) {
    // Only an operand's shape or type can be in the way, so a chain is cut before a binary step.
    if (!steps[count].is_binary()) continue;
    const auto cut = steps.begin() + static_cast<std::ptrdiff_t>(count);
    FusedPrimitive part = choose({steps.begin(), cut});
    if (part.implementation.empty() || is_reference(part.implementation)) continue;
    part.fused.assign(steps.begin(), cut);
    part.rest.assign(cut, steps.end());
    return part;
  }
  return whole;
}

bool has_reference_rest(const FusedPrimitive& chosen, const OperandView& view) {
  return std::ranges::any_of(rest_steps(chosen.rest, view, chosen.dst), [](const RestStep& rest) { return is_reference(rest.desc.impl_info_str()); });
}

std::unique_ptr<Plan> finish_fused(PlanBuilder& builder, const FusedPrimitive& chosen, const FusedOperands& operands,
                                   const OperandView& view) {
  const auto& [src, weights, bias, dst] = operands;
  std::vector<std::pair<int, int>> arguments{
      {DNNL_ARG_SRC, builder.loaded(src.tensor, src.desc, chosen.src)},
      {DNNL_ARG_WEIGHTS, builder.loaded(weights.tensor, weights.desc, chosen.desc.query_md(dnnl::query::weights_md))},
  };
  if (bias.tensor >= 0) arguments.emplace_back(DNNL_ARG_BIAS, builder.operand(bias.tensor, bias.desc));
  load_operands(builder, chosen.post, arguments);
  const int to = builder.result(dst.tensor, dst.desc, chosen.dst);
  arguments.emplace_back(DNNL_ARG_DST, to);
  builder.run(chosen.desc, std::move(arguments));
  const std::string unfused = run_rest(builder, chosen.rest, view, to);
  builder.store(dst.tensor, dst.desc, to);
  return builder.finish(chosen.implementation + (bias.tensor >= 0 ? " + bias" : "") + words(chosen.fused) + unfused);
}

}  // namespace hipdnn_port::onednn
