// Convolutions, forward and transposed, with their epilogues.
#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "onednn_builders.h"
#include "onednn_fusion.h"

namespace hipdnn_port::onednn {

namespace {

using dnnl::memory;

/// What the forward and the transposed form share: `x` is what is read, `y` what is computed, whatever the ABI calls them.
struct Convolution {
  int x = -1;
  int w = -1;
  int y = -1;
  bool transposed = false;
  std::int64_t groups = 1;
  Dims strides, dilations, before, after;
};

constexpr auto kForwardX = HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X;
constexpr auto kForwardW = HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W;
constexpr auto kForwardY = HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y;
constexpr auto kDataDy = HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY;
constexpr auto kDataW = HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W;
constexpr auto kDataDx = HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX;

/// Requires the rank of the operands to be known to agree.
Convolution read(const Graph& graph, bool transposed) {
  const Node& node = graph.nodes[0];
  Convolution c;
  c.transposed = transposed;
  c.x = node.tensor(transposed ? kDataDy : kForwardX);
  c.w = node.tensor(transposed ? kDataW : kForwardW);
  c.y = node.tensor(transposed ? kDataDx : kForwardY);
  c.strides = node.ints(HIPDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  c.dilations = node.ints(HIPDNN_ATTR_CONVOLUTION_DILATIONS);
  for (std::int64_t& d : c.dilations) d -= 1;  // oneDNN counts the gaps between taps
  c.before = node.ints(HIPDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  c.after = node.ints(HIPDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  // The image side of the forward convolution has groups times the channels of the filter's dimension 1.
  const Tensor& image = graph.tensor(transposed ? c.y : c.x);
  c.groups = image.dims[1] / graph.tensor(c.w).dims[1];
  return c;
}

std::optional<std::string> refuses(const Graph& graph, bool transposed) {
  const Node& node = graph.nodes[0];
  if (node.integer_or(HIPDNN_ATTR_CONVOLUTION_CONV_MODE, HIPDNN_CROSS_CORRELATION) != HIPDNN_CROSS_CORRELATION) {
    return "convolution " + node.name + " flips its filter (mode CONVOLUTION); only CROSS_CORRELATION is taken";
  }
  const std::size_t rank = graph.tensor(node.tensor(transposed ? kDataDy : kForwardX)).dims.size();
  const Tensor& w = graph.tensor(node.tensor(transposed ? kDataW : kForwardW));
  if (rank < 3 || rank > 5) return "convolution " + node.name + " has operands of rank " + std::to_string(rank) + "; taken are 3, 4 and 5";
  for (const auto& [attribute, tensors] : node.tensors) {
    if (const auto reason = refuses_tensor(graph.tensor(tensors[0]))) return reason;
  }
  const Tensor& image = graph.tensor(node.tensor(transposed ? kDataDx : kForwardX));
  if (image.dims[1] % w.dims[1] != 0 || w.dims[0] % (image.dims[1] / w.dims[1]) != 0) {
    return "convolution " + node.name + ": channels of " + describe(image) + " and " + describe(w) + " form no groups";
  }
  const auto epilogue = read_epilogue(graph, 0, node.tensor(transposed ? kDataDx : kForwardY));
  if (const std::string* reason = std::get_if<std::string>(&epilogue)) return *reason;
  return std::nullopt;
}

/// Dims and strides of the filter as oneDNN wants them: [g,] output channels, input channels of a group, taps.
memory::desc filter_desc(const Graph& graph, const Convolution& c) {
  const Tensor& w = graph.tensor(c.w);
  const std::int64_t first = w.dims[0] / c.groups;
  Dims dims{first, w.dims[1]};
  Dims strides{w.strides[0], w.strides[1]};
  if (c.transposed) {
    std::swap(dims[0], dims[1]);
    std::swap(strides[0], strides[1]);
  }
  dims.insert(dims.end(), w.dims.begin() + 2, w.dims.end());
  strides.insert(strides.end(), w.strides.begin() + 2, w.strides.end());
  if (c.groups > 1) {
    dims.insert(dims.begin(), c.groups);
    strides.insert(strides.begin(), first * w.strides[0]);
  }
  return memory_of(dims, data_type_of(w.dtype), normalized_strides(dims, strides, true));
}

/// What stays the same whichever layouts are tried.
struct Problem {
  const Convolution& convolution;
  OperandView view;
  memory::desc w;     ///< as stored, oneDNN's dimension order
  memory::desc bias;  ///< empty where there is none
};

template <class Primitive>
typename Primitive::primitive_desc first_choice(const Problem& p, const FusedPrimitive& chosen, dnnl::algorithm algorithm) {
  dnnl::primitive_attr attributes = PlanBuilder::attributes();
  attributes.set_post_ops(chosen.post.operations);
  const memory::desc any_w(p.w.get_dims(), p.w.get_data_type(), memory::format_tag::any);
  const Convolution& c = p.convolution;
  return {cpu_engine(), dnnl::prop_kind::forward_inference, algorithm, chosen.src, any_w,      p.bias,
          chosen.dst,   c.strides,                          c.dilations, c.before, c.after, attributes, true};
}

/// Kernels that oneDNN offers first, and those further down its list that are faster for f32: depthwise convolutions by 10 to 50%, those of
/// one tap by 5 to 20% (channels-last; those of AVX2 on an EPYC, shapes of MobileNets, ConvNeXt and ResNet-50).
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kFaster{{
    {"brdgmm_dw:avx512_core", "jit_dw:avx512_core"},
    {"brdgmm_dw:avx2", "jit_dw:avx2"},
    {"brgconv_1x1:avx2", "jit_1x1:avx2"},
}};

/// oneDNN's first choice, or the faster one.
template <class Primitive>
dnnl::primitive_desc_base primitive_of(const Problem& p, const FusedPrimitive& chosen, dnnl::algorithm algorithm) {
  auto desc = first_choice<Primitive>(p, chosen, algorithm);
  if (!desc.get(true)) return desc;
  const auto* const faster = std::ranges::find(kFaster, std::string_view(desc.impl_info_str()), [](const auto& pair) { return pair.first; });
  if (faster == kFaster.end()) return desc;
  while (desc.next_impl()) {
    if (desc.impl_info_str() == faster->second) return desc;
  }
  return first_choice<Primitive>(p, chosen, algorithm);
}

FusedPrimitive try_layouts(const Problem& p, const std::vector<EpilogueStep>& steps, const memory::desc& x, const memory::desc& y) {
  FusedPrimitive chosen{x, y, post_operations(steps, p.view, y), {}, {}, {}, {}};
  chosen.desc = p.convolution.transposed
                    ? primitive_of<dnnl::deconvolution_forward>(p, chosen, dnnl::algorithm::deconvolution_direct)
                    : primitive_of<dnnl::convolution_forward>(p, chosen, dnnl::algorithm::convolution_direct);
  if (chosen.desc.get(true)) chosen.implementation = chosen.desc.impl_info_str();
  return chosen;
}

memory::desc channels_last(const memory::desc& desc) {
  return memory_of(desc.get_dims(), desc.get_data_type(), channels_last_strides(desc.get_dims()));
}

/// The caller's layouts where oneDNN has a direct kernel for them; else channels-last on one or both sides, copied by the plan.
FusedPrimitive choose(const Problem& p, const std::vector<EpilogueStep>& steps, const memory::desc& x, const memory::desc& y) {
  FusedPrimitive best = try_layouts(p, steps, x, y);
  for (const auto& [x_tried, y_tried] : std::array<std::pair<memory::desc, memory::desc>, 3>{
           {{channels_last(x), y}, {x, channels_last(y)}, {channels_last(x), channels_last(y)}}}) {
    if (is_direct(best.implementation)) break;
    if (x_tried != best.src || y_tried != best.dst) best = better(std::move(best), try_layouts(p, steps, x_tried, y_tried));
  }
  return best;
}

/// Whether images are columns, of one pixel in each row, and filters too. oneDNN computes several pixels of a row at once.
bool has_columns(const Graph& graph, const Convolution& c) {
  const auto is_column = [&](int t) { return graph.tensor(t).dims[3] == 1; };
  return std::ranges::all_of(graph.tensors, [](const Tensor& tensor) { return tensor.dims.size() == 4; }) && is_column(c.x) && is_column(c.w) &&
         is_column(c.y) && graph.tensor(c.y).dims[2] > 1;
}

/// The graph with columns for rows, and rows for columns.
Graph turned(Graph graph) {
  for (Tensor& tensor : graph.tensors) {
    std::swap(tensor.dims[2], tensor.dims[3]);
    std::swap(tensor.strides[2], tensor.strides[3]);
  }
  for (const auto name : {HIPDNN_ATTR_CONVOLUTION_FILTER_STRIDES, HIPDNN_ATTR_CONVOLUTION_DILATIONS, HIPDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
                          HIPDNN_ATTR_CONVOLUTION_POST_PADDINGS}) {
    auto& numbers = std::get<std::vector<std::int64_t>>(graph.nodes[0].attributes.at(name));
    std::swap(numbers[0], numbers[1]);
  }
  return graph;
}

std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions& options, bool transposed) {
  const Convolution c = read(graph, transposed);
  if (has_columns(graph, c)) return build(turned(graph), options, transposed);
  PlanBuilder builder(graph, options);
  const Epilogue epilogue = std::get<Epilogue>(read_epilogue(graph, 0, c.y));
  const Tensor& result = graph.tensor(epilogue.result);
  const auto [bias, steps] = split_bias(graph, result, 1, epilogue.steps);
  Problem problem{c, {}, filter_desc(graph, c), {}};
  if (bias) problem.bias = memory_of({result.dims[1]}, memory::data_type::f32, {1});
  problem.view = [&](int t) { return memory_of(broadcast_view(graph.tensor(t), result.dims.size())); };
  const memory::desc x = memory_of(graph.tensor(c.x));
  const memory::desc y = memory_of(result);
  const FusedPrimitive chosen =
      fuse_longest(steps, [&](const std::vector<EpilogueStep>& fused) { return choose(problem, fused, x, y); });
  if (chosen.implementation.empty()) throw std::runtime_error("oneDNN has no convolution for these operands");
  return finish_fused(builder, chosen, {{c.x, x}, {c.w, problem.w}, {bias.value_or(-1), problem.bias}, {epilogue.result, y}}, problem.view);
}

}  // namespace

std::optional<std::string> convolution_refuses(const Graph& graph) { return refuses(graph, false); }
std::unique_ptr<Plan> build_convolution(const Graph& graph, const PlanOptions& options) { return build(graph, options, false); }
std::optional<std::string> transposed_convolution_refuses(const Graph& graph) { return refuses(graph, true); }
std::unique_ptr<Plan> build_transposed_convolution(const Graph& graph, const PlanOptions& options) { return build(graph, options, true); }

}  // namespace hipdnn_port::onednn
