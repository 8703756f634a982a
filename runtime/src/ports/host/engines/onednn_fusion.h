// Epilogues as one primitive takes them: the bias argument, post-operations and the memory they read.
#pragma once

#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onednn_epilogue.h"
#include "onednn_plan.h"

namespace hipdnn_host::onednn {

/// A tensor's memory as the primitive's result sees it: as many dimensions as the result, one or equal in each.
using OperandView = std::function<dnnl::memory::desc(int tensor)>;

/// The steps of an epilogue with one addition of a vector along dimension `axis` of the result taken out, to become the bias.
struct BiasAndSteps {
  std::optional<int> bias;  ///< index in Graph::tensors
  std::vector<EpilogueStep> steps;
};
BiasAndSteps split_bias(const Graph& graph, const Tensor& result, std::size_t axis, std::vector<EpilogueStep> steps);

/// Post-operations for one choice of the result's layout.
struct PostOperations {
  struct Operand {
    int argument;  ///< DNNL_ARG_...
    int tensor;
    dnnl::memory::desc stored;
    dnnl::memory::desc wanted;
  };
  dnnl::post_ops operations;
  std::vector<Operand> operands;
};
PostOperations post_operations(const std::vector<EpilogueStep>& steps, const OperandView& view,
                               const dnnl::memory::desc& result);

/// Does oneDNN run this on generic loops instead of generated code? Those are slower by one to two orders of magnitude.
bool is_reference(const std::string& implementation);

/// The builder's arguments for the post-operations' operands.
void load_operands(PlanBuilder& builder, const PostOperations& post, std::vector<std::pair<int, int>>& arguments);

}  // namespace hipdnn_host::onednn
