// Epilogues as one primitive takes them: the bias argument, post-operations and the memory they read.
#pragma once

#include <functional>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onednn_epilogue.h"
#include "onednn_plan.h"

namespace hipdnn_port::onednn {

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

/// Generic loops instead of generated code: slower by one to two orders of magnitude.
bool is_reference(const std::string& implementation);
/// A kernel for the operation itself, as opposed to a matrix product on a rearranged copy or generic loops.
bool is_direct(const std::string& implementation);
/// Do elements lie apart in memory, whatever their order?
bool has_gaps(const dnnl::memory::desc& desc);

/// One way to run an anchor: layouts of what is read and written, with what oneDNN has for them.
struct FusedPrimitive {
  dnnl::memory::desc src, dst;
  PostOperations post;
  dnnl::primitive_desc_base desc;
  std::string implementation;  ///< empty where oneDNN has nothing
  /// Steps that became post-operations, and those that follow as primitives of their own.
  std::vector<EpilogueStep> fused, rest;
};

/// Of two ways the one to prefer: direct kernels, then other generated code, then anything, else the first.
FusedPrimitive better(FusedPrimitive first, FusedPrimitive second);

/// The choice for as many of the leading steps as oneDNN fuses into generated code; all of them where no prefix helps.
FusedPrimitive fuse_longest(const std::vector<EpilogueStep>& steps,
                            const std::function<FusedPrimitive(const std::vector<EpilogueStep>&)>& choose);

/// Would steps that could not be fused run in generic loops?
bool has_reference_rest(const FusedPrimitive& chosen, const OperandView& view);

/// A tensor of the graph as stored and as oneDNN orders its dimensions.
struct Stored {
  int tensor = -1;
  dnnl::memory::desc desc;
};

/// Operands of an anchor; `bias` has tensor -1 where there is none.
struct FusedOperands {
  Stored src, weights, bias, dst;
};

/// The plan: operands brought into the chosen layouts, the primitive, steps that could not be fused, the result brought back.
std::unique_ptr<Plan> finish_fused(PlanBuilder& builder, const FusedPrimitive& chosen, const FusedOperands& operands,
                                   const OperandView& view);

}  // namespace hipdnn_port::onednn
