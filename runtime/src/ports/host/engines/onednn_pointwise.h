// Pointwise nodes one at a time: which oneDNN elementwise functions and binary operations each of them is.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "onednn_epilogue.h"

namespace hipdnn_port::onednn {

inline constexpr auto kIn0 = HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT;
inline constexpr auto kIn1 = HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT;
inline constexpr auto kIn2 = HIPDNN_ATTR_OPERATION_POINTWISE_IN_2_EXT;

using Steps = std::vector<EpilogueStep>;

/// Stands for the error function, which oneDNN has only inside gelu; a chain that keeps it is refused.
inline constexpr dnnl::algorithm kErf = dnnl::algorithm::undef;

EpilogueStep eltwise(dnnl::algorithm algorithm, float alpha = 0.0F, float beta = 0.0F);

/// The steps a node applies to its input `value` (index in Graph::tensors), or why it has none.
std::variant<Steps, std::string> node_steps(const Graph& graph, const Node& node, int value);

/// Appends a step, folding scale-and-shift steps into one and dropping those that change nothing.
void append_step(Steps& steps, const EpilogueStep& step);

/// x * f(x) as steps on x, where the two factors were written out as chains from x (hard swish, swish, gelu, mish);
/// an empty answer where oneDNN has no such function.
Steps product_of(const Steps& left, const Steps& right);

}  // namespace hipdnn_port::onednn
