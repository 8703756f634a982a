// The pointwise nodes after a convolution or matrix product, read as one chain of oneDNN post-operations.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <variant>
#include <vector>

#include "frontend/graph.h"

namespace hipdnn_port::onednn {

/// One step on the running value v: an elementwise function of v, or v combined with a tensor.
struct EpilogueStep {
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  float alpha = 0.0F;
  float beta = 0.0F;
  /// Index of the other operand of a binary step in Graph::tensors; -1 for an elementwise step.
  int operand = -1;

  bool is_binary() const { return operand >= 0; }
};

/// What happens to an anchor's result before it is stored.
struct Epilogue {
  std::vector<EpilogueStep> steps;
  /// Index of the tensor that is stored in the end.
  int result = -1;
};

/// The chain of nodes after `anchor`, or the reason why the graph is not one chain that oneDNN has post-operations for.
std::variant<Epilogue, std::string> read_epilogue(const Graph& graph, int anchor, int anchor_result);

/// "bias + relu"-like words for the steps, in order, each preceded by " + ".
std::string words(const std::vector<EpilogueStep>& steps);

}  // namespace hipdnn_port::onednn
