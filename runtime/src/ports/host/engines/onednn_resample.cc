// Pooling.
#include <algorithm>
#include <stdexcept>

#include "onednn_builders.h"
#include "onednn_fusion.h"

namespace hipdnn_port::onednn {

namespace {

using dnnl::memory;

constexpr auto kX = HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC;
constexpr auto kY = HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC;

struct Pooling {
  int x = -1;
  int y = -1;
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  Dims window, strides, before, after;
  /// Maximum with zeros around the image: they take part in it, unlike oneDNN's padding.
  bool copies_into_zeros = false;

  bool pads() const {
    const auto positive = [](std::int64_t p) { return p > 0; };
    return std::any_of(before.begin(), before.end(), positive) || std::any_of(after.begin(), after.end(), positive);
  }
};

Pooling read(const Graph& graph) {
  const Node& node = graph.nodes[0];
  Pooling p;
  p.x = node.tensor(kX);
  p.y = node.tensor(kY);
  p.window = node.ints(HIPDNN_ATTR_RESAMPLE_WINDOW_DIMS);
  p.strides = node.ints(HIPDNN_ATTR_RESAMPLE_STRIDES);
  p.before = node.ints(HIPDNN_ATTR_RESAMPLE_PRE_PADDINGS);
  p.after = node.ints(HIPDNN_ATTR_RESAMPLE_POST_PADDINGS);
  const std::int64_t mode = node.integer(HIPDNN_ATTR_RESAMPLE_MODE);
  p.algorithm = mode == HIPDNN_RESAMPLE_MAXPOOL                   ? dnnl::algorithm::pooling_max
                : mode == HIPDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING ? dnnl::algorithm::pooling_avg_exclude_padding
                                                                  : dnnl::algorithm::pooling_avg_include_padding;
  const bool zeros = node.integer_or(HIPDNN_ATTR_RESAMPLE_PADDING_MODE, HIPDNN_PADDING_NEG_INF_PAD) == HIPDNN_PADDING_ZERO_PAD;
  p.copies_into_zeros = mode == HIPDNN_RESAMPLE_MAXPOOL && zeros && p.pads();
  return p;
}

/// Copies the image into a larger one of zeros; afterwards the windows need no padding.
int copy_into_zeros(PlanBuilder& builder, Pooling& p, const memory::desc& x) {
  Dims dims = x.get_dims();
  Dims offsets(dims.size(), 0);
  for (std::size_t d = 0; d < p.window.size(); ++d) {
    dims[d + 2] += p.before[d] + p.after[d];
    offsets[d + 2] = p.before[d];
  }
  const memory::desc whole = memory_of(dims, x.get_data_type(), channels_last_strides(dims));
  const int slot = builder.scratch(whole);
  builder.zero(slot);
  builder.copy(builder.operand(p.x, x), builder.view(slot, whole.submemory_desc(x.get_dims(), offsets)));
  p.before.assign(p.window.size(), 0);
  p.after.assign(p.window.size(), 0);
  return slot;
}

struct Choice {
  memory::desc x, y;
  dnnl::primitive_desc_base desc;
  std::string implementation;
};

Choice try_layouts(const Pooling& p, const memory::desc& x, const memory::desc& y) {
  Choice choice{x, y, {}, {}};
  const Dims no_gaps(p.window.size(), 0);
  choice.desc = dnnl::pooling_forward::primitive_desc(cpu_engine(), dnnl::prop_kind::forward_inference, p.algorithm, x, y, p.strides,
                                                      p.window, no_gaps, p.before, p.after, PlanBuilder::attributes(), true);
  if (choice.desc.get(true)) choice.implementation = choice.desc.impl_info_str();
  return choice;
}

memory::desc channels_last(const memory::desc& desc) {
  return memory_of(desc.get_dims(), desc.get_data_type(), channels_last_strides(desc.get_dims()));
}

/// oneDNN's pooling wants one layout on both sides; the result's is tried first as channels-last is its usual one.
Choice choose(const Pooling& p, const memory::desc& x, const memory::desc& y) {
  Choice choice = try_layouts(p, x, y);
  if (!choice.implementation.empty() && !is_reference(choice.implementation)) return choice;
  Choice copied = try_layouts(p, channels_last(x), channels_last(y));
  if (!copied.implementation.empty()) choice = std::move(copied);
  if (choice.implementation.empty()) throw std::runtime_error("oneDNN has no pooling for these operands");
  return choice;
}

}  // namespace

std::optional<std::string> resample_refuses(const Graph& graph) {
  const Node& node = graph.nodes[0];
  if (graph.nodes.size() > 1) return "resample " + node.name + " is followed by other nodes; oneDNN pools without an epilogue";
  if (node.has_tensor(HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC) || node.integer_or(HIPDNN_ATTR_RESAMPLE_GENERATE_INDEX_EXT, 0) != 0) {
    return "resample " + node.name + " asks for the indices of the maxima";
  }
  const std::size_t rank = graph.tensor(node.tensor(kX)).dims.size();
  if (rank < 3 || rank > 5) return "resample " + node.name + " has operands of rank " + std::to_string(rank) + "; taken are 3, 4 and 5";
  const Pooling p = read(graph);
  for (const int t : {p.x, p.y}) {
    const Tensor& tensor = graph.tensor(t);
    const bool is_byte = tensor.dtype == HIPDNN_DATA_INT8 || tensor.dtype == HIPDNN_DATA_UINT8;
    const bool is_maximum_of_bytes = is_byte && p.algorithm == dnnl::algorithm::pooling_max;
    if (const auto reason = is_maximum_of_bytes ? refuses_layout(tensor) : refuses_tensor(tensor)) return reason;
  }
  const bool infinite = node.integer_or(HIPDNN_ATTR_RESAMPLE_PADDING_MODE, HIPDNN_PADDING_ZERO_PAD) == HIPDNN_PADDING_NEG_INF_PAD;
  if (p.algorithm == dnnl::algorithm::pooling_avg_include_padding && infinite && p.pads()) {
    return "resample " + node.name + " averages over padding of minus infinity";
  }
  return std::nullopt;
}

std::unique_ptr<Plan> build_resample(const Graph& graph, const PlanOptions& options) {
  PlanBuilder builder(graph, options);
  Pooling p = read(graph);
  memory::desc x = memory_of(builder.tensor(p.x));
  const memory::desc y = memory_of(builder.tensor(p.y));
  std::optional<int> from;
  if (p.copies_into_zeros) {
    from = copy_into_zeros(builder, p, x);
    x = builder.desc(*from);
  }
  const Choice choice = choose(p, x, y);
  if (!from) from = builder.loaded(p.x, x, choice.x);
  const int to = builder.result(p.y, y, choice.y);
  builder.run(choice.desc, {{DNNL_ARG_SRC, *from}, {DNNL_ARG_DST, to}});
  builder.store(p.y, y, to);
  return builder.finish(choice.implementation);
}

}  // namespace hipdnn_port::onednn
