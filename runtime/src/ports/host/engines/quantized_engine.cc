// Convolutions and matmuls of 8-bit integers, summed in int32 by oneDNN: a zero point before, a factor and an offset per channel behind.
#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string_view>

#include "frontend/engine.h"
#include "frontend/names.h"
#include "frontend/status.h"
#include "onednn_fusion.h"
#include "onednn_memory.h"
#include "onednn_plan.h"
#include "rowwise_program.h"

namespace hipdnn_port {
namespace {

using dnnl::memory;
using onednn::cpu_engine;
using onednn::Dims;

constexpr auto kPointwise = HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
constexpr auto kConvolution = HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
constexpr auto kMatmul = HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
constexpr auto kIn0 = HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT;
constexpr auto kIn1 = HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT;
constexpr auto kOut = HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT;

/// The graph's tensors by what they are: y = (x - zero) * w, summed, * factor + offset. Without a zero point, that is -1.
struct Quantized {
  const Node* anchor = nullptr;
  bool is_convolution = false;
  int x = -1, zero = -1, w = -1, factor = -1, offset = -1, y = -1;
  std::size_t channel_axis = 1;  ///< of y
};

void require_layout(const Tensor& tensor) {
  if (const auto reason = onednn::refuses_layout(tensor)) throw Refusal(*reason);
}

const Node& pointwise(const Graph& graph, std::size_t index, std::int64_t mode, const char* what) {
  const Node& node = graph.nodes[index];
  if (node.type != kPointwise || node.integer(HIPDNN_ATTR_POINTWISE_MODE) != mode) throw Refusal(text("node ", index, " is no ", what));
  return node;
}

void require_virtual(const Graph& graph, int t, int reader) {
  if (!graph.tensor(t).is_virtual || t != reader) throw Refusal("is no chain SUB, convolution or matmul, MUL, ADD");
}

void require_int32(const Graph& graph, int t) {
  if (graph.tensor(t).dtype != HIPDNN_DATA_INT32) throw Refusal(text(describe(graph.tensor(t)), " is not int32"));
}

/// A float that all channels share, or one for each.
void require_channels(const Graph& graph, int t, const Quantized& q, bool may_be_one) {
  const Tensor& vector = graph.tensor(t);
  const std::int64_t channels = graph.tensor(q.y).dims[q.channel_axis];
  const std::int64_t count = vector.element_count();
  if (vector.dtype != HIPDNN_DATA_FLOAT || vector.is_virtual) throw Refusal(text(describe(vector), " is no float operand"));
  if (vector.rank() != graph.tensor(q.y).rank() || vector.dims[q.channel_axis] != count || (count != channels && !(may_be_one && count == 1))) {
    throw Refusal(text(describe(vector), " for ", channels, " channels"));
  }
  if (count > 1 && vector.strides[q.channel_axis] != 1) throw Refusal(text(describe(vector), " has gaps"));
}

/// What makes unsigned bytes of signed ones.
constexpr std::int32_t kLift = 128;

/// Whether convolutions read x plus kLift: without VNNI oneDNN halves the weights of signed x, and what is odd of them is lost.
bool lifts(const Graph& graph, const Quantized& q) {
  const bool multiplies_signed = onednn::isa_includes(dnnl_cpu_isa_avx512_core_vnni) || onednn::isa_includes(dnnl_cpu_isa_avx2_vnni);
  return q.is_convolution && graph.tensor(q.x).dtype == HIPDNN_DATA_INT8 && !multiplies_signed;
}

bool is_byte(hipdnnDataType_t type) { return type == HIPDNN_DATA_INT8 || type == HIPDNN_DATA_UINT8; }

void require_operands(const Graph& graph, const Quantized& q) {
  const Tensor &x = graph.tensor(q.x), &w = graph.tensor(q.w), &y = graph.tensor(q.y);
  if (!x.has_pointer() || !is_byte(x.dtype)) throw Refusal(text(describe(x), " is no operand of 8 bits"));
  if (!w.has_pointer() || w.dtype != HIPDNN_DATA_INT8) throw Refusal(text(describe(w), " is no operand of int8"));
  if (y.is_virtual || (!is_byte(y.dtype) && y.dtype != HIPDNN_DATA_FLOAT)) throw Refusal(text(describe(y), " is no result of 8 bits or float32"));
  if (q.zero >= 0) {
    const Tensor& zero = graph.tensor(q.zero);
    if (zero.is_virtual || zero.dtype != HIPDNN_DATA_INT32 || zero.element_count() != 1) throw Refusal(text(describe(zero), " is no zero point"));
  }
  for (const Tensor* tensor : {&x, &w, &y}) require_layout(*tensor);
  require_channels(graph, q.factor, q, true);
  require_channels(graph, q.offset, q, false);
}

Quantized read(const Graph& graph) {
  const std::size_t count = graph.nodes.size();
  if (count != 3 && count != 4) throw Refusal("has other nodes than SUB, convolution or matmul, MUL, ADD");
  Quantized q;
  q.anchor = &graph.nodes[count - 3];
  q.is_convolution = q.anchor->type == kConvolution;
  if (!q.is_convolution && q.anchor->type != kMatmul) throw Refusal("has no convolution and no matmul");
  const Node& scaled = pointwise(graph, count - 2, HIPDNN_POINTWISE_MUL, "MUL");
  const Node& shifted = pointwise(graph, count - 1, HIPDNN_POINTWISE_ADD, "ADD");
  const int multiplied = q.anchor->tensor(q.is_convolution ? HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X : HIPDNN_ATTR_OPERATION_MATMUL_ADESC);
  const int sums = q.anchor->tensor(q.is_convolution ? HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y : HIPDNN_ATTR_OPERATION_MATMUL_CDESC);
  q.x = multiplied;
  if (count == 4) {
    const Node& centred = pointwise(graph, 0, HIPDNN_POINTWISE_SUB, "SUB");
    q.x = centred.tensor(kIn0);
    q.zero = centred.tensor(kIn1);
    require_virtual(graph, centred.tensor(kOut), multiplied);
    require_int32(graph, multiplied);
  }
  q.w = q.anchor->tensor(q.is_convolution ? HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W : HIPDNN_ATTR_OPERATION_MATMUL_BDESC);
  q.factor = scaled.tensor(kIn1);
  q.offset = shifted.tensor(kIn1);
  q.y = shifted.tensor(kOut);
  require_virtual(graph, sums, scaled.tensor(kIn0));
  require_virtual(graph, scaled.tensor(kOut), shifted.tensor(kIn0));
  require_int32(graph, sums);
  const std::size_t rank = graph.tensor(q.y).dims.size();
  q.channel_axis = q.is_convolution ? 1 : rank - 1;
  require_operands(graph, q);
  if (q.is_convolution) {
    if (rank < 3 || rank > 5) throw Refusal(text("convolution of rank ", rank, "; taken are 3, 4 and 5"));
    if (q.anchor->integer_or(HIPDNN_ATTR_CONVOLUTION_CONV_MODE, HIPDNN_CROSS_CORRELATION) != HIPDNN_CROSS_CORRELATION) {
      throw Refusal("flips its filter");
    }
  } else {
    const Tensor& w = graph.tensor(q.w);
    if (std::any_of(w.dims.begin(), w.dims.end() - 2, [](std::int64_t size) { return size != 1; })) throw Refusal("has batches of weights");
  }
  return q;
}

/// Operands in oneDNN's form, and what the primitive is made of.
struct Problem {
  memory::desc x, w, y, offset, factor;
  memory::desc read;  ///< x as the primitive reads it, in any layout
  dnnl::primitive_attr attributes;
};

memory::desc vector_desc(std::int64_t count) { return onednn::memory_of({count}, memory::data_type::f32, {1}); }

bool has_zero(const Graph& graph, const Quantized& q) {
  if (lifts(graph, q)) return true;
  return q.zero >= 0 && (!graph.tensor(q.zero).value || graph.tensor(q.zero).scalar() != 0);
}

dnnl::primitive_attr attributes_of(const Graph& graph, const Quantized& q, int channel_mask) {
  dnnl::primitive_attr attributes = onednn::PlanBuilder::attributes();
  attributes.set_scales_mask(DNNL_ARG_WEIGHTS, graph.tensor(q.factor).element_count() == 1 ? 0 : channel_mask);
  if (has_zero(graph, q)) attributes.set_zero_points_mask(DNNL_ARG_SRC, 0);
  return attributes;
}

bool is_absent_or_reference(const dnnl::primitive_desc_base& desc) { return !desc.get(true) || onednn::is_reference(desc.impl_info_str()); }

memory::desc any_of(const memory::desc& desc) { return {desc.get_dims(), desc.get_data_type(), memory::format_tag::any}; }

memory::desc filter_desc(const Tensor& w, std::int64_t groups) {
  Dims dims = w.dims, strides = w.strides;
  if (groups > 1) {
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
    strides.insert(strides.begin(), dims[1] * w.strides[0]);
  }
  return onednn::memory_of(dims, memory::data_type::s8, onednn::normalized_strides(dims, strides, true));
}

dnnl::primitive_desc_base convolution(const Graph& graph, const Quantized& q, Problem& p) {
  const Tensor &x = graph.tensor(q.x), &w = graph.tensor(q.w), &y = graph.tensor(q.y);
  const std::int64_t groups = x.dims[1] / w.dims[1];
  p.x = onednn::memory_of(x);
  p.read = lifts(graph, q) ? onednn::memory_of(x.dims, memory::data_type::u8, onednn::channels_last_strides(x.dims)) : p.x;
  p.y = onednn::memory_of(y);
  p.w = filter_desc(w, groups);
  p.offset = vector_desc(y.dims[1]);
  p.attributes = attributes_of(graph, q, groups > 1 ? 3 : 1);
  Dims gaps = q.anchor->ints(HIPDNN_ATTR_CONVOLUTION_DILATIONS);
  for (std::int64_t& gap : gaps) gap -= 1;
  const auto made = [&](const memory::desc& src, const memory::desc& dst) {
    return dnnl::convolution_forward::primitive_desc(
        cpu_engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, src, any_of(p.w), p.offset, dst,
        q.anchor->ints(HIPDNN_ATTR_CONVOLUTION_FILTER_STRIDES), gaps, q.anchor->ints(HIPDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
        q.anchor->ints(HIPDNN_ATTR_CONVOLUTION_POST_PADDINGS), p.attributes, true);
  };
  auto desc = made(p.read, p.y);
  if (!is_absent_or_reference(desc)) return desc;
  const auto last = [](const memory::desc& d) {
    return onednn::memory_of(d.get_dims(), d.get_data_type(), onednn::channels_last_strides(d.get_dims()));
  };
  auto copied = made(last(p.read), last(p.y));
  return is_absent_or_reference(copied) ? desc : copied;
}

/// Rows of all batches under each other, where they lie in C order.
memory::desc rows_of(const Tensor& tensor) {
  if (!onednn::same_layout(tensor.dims, tensor.strides, onednn::plain_strides(tensor.dims))) return onednn::memory_of(tensor, true);
  const std::int64_t columns = tensor.dims.back();
  return onednn::memory_of({tensor.element_count() / columns, columns}, onednn::data_type_of(tensor.dtype), {columns, 1});
}

/// A product as a convolution of 1 x 1 over as many pixels, whose weights are packed once: oneDNN's gemm packs them in each run.
dnnl::primitive_desc_base rows_as_pixels(const Graph& graph, const Quantized& q, Problem& p) {
  const Dims rows = p.x.get_dims(), w = p.w.get_dims(), w_strides = p.w.get_strides();
  const auto pixels = [&](std::int64_t channels, memory::data_type type) {
    const Dims dims{1, channels, 1, rows[0]};
    return onednn::memory_of(dims, type, onednn::channels_last_strides(dims));
  };
  p.x = pixels(w[0], p.x.get_data_type());
  p.y = pixels(w[1], p.y.get_data_type());
  p.w = onednn::memory_of({w[1], w[0], 1, 1}, memory::data_type::s8, {w_strides[1], w_strides[0], 1, 1});
  p.offset = vector_desc(w[1]);
  p.attributes = attributes_of(graph, q, 1);
  return dnnl::convolution_forward::primitive_desc(cpu_engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, p.x,
                                                   any_of(p.w), p.offset, p.y, {1, 1}, {0, 0}, {0, 0}, p.attributes, true);
}

dnnl::primitive_desc_base matmul(const Graph& graph, const Quantized& q, Problem& p) {
  p.x = rows_of(graph.tensor(q.x));
  p.y = rows_of(graph.tensor(q.y));
  if (p.x.get_ndims() != p.y.get_ndims()) {
    p.x = onednn::memory_of(graph.tensor(q.x), true);
    p.y = onednn::memory_of(graph.tensor(q.y), true);
  }
  const auto rank = static_cast<std::size_t>(p.y.get_ndims());
  Tensor w = graph.tensor(q.w);
  while (w.dims.size() > rank) {
    w.dims.erase(w.dims.begin());
    w.strides.erase(w.strides.begin());
  }
  p.w = onednn::memory_of(w, true);
  Dims bias(rank, 1);
  bias.back() = w.dims.back();
  p.offset = onednn::memory_of(bias, memory::data_type::f32, onednn::plain_strides(bias));
  p.attributes = attributes_of(graph, q, 1 << (rank - 1));
  const dnnl::matmul::primitive_desc desc(cpu_engine(), p.x, any_of(p.w), p.offset, p.y, p.attributes, true);
  constexpr std::int64_t most_rows = 512;  // of more, the product takes much longer than packing
  const bool packs_each_run = desc.get(true) && std::string_view(desc.impl_info_str()).starts_with("gemm");
  const auto is_plain = [](const memory::desc& d) { return onednn::same_layout(d.get_dims(), d.get_strides(), onednn::plain_strides(d.get_dims())); };
  if (!packs_each_run || rank != 2 || p.y.get_dims()[0] > most_rows || !is_plain(p.x) || !is_plain(p.y)) return desc;
  if (graph.tensor(q.x).dtype != HIPDNN_DATA_UINT8) return desc;
  return rows_as_pixels(graph, q, p);
}

class QuantizedEngine final : public Engine {
 public:
  std::string_view name() const override { return "HOST_QUANTIZED_ENGINE"; }

  std::optional<std::string> refuses(const Graph& graph) const override {
    return refusal_of([&] { read(graph); });
  }

  std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions& options) const override {
    const Quantized q = read(graph);
    try {
      return built(graph, q, options);
    } catch (const dnnl::error& error) {
      throw std::runtime_error(std::string("oneDNN: ") + error.what());
    }
  }

 private:
  /// Integers plus kLift, in memory of another form.
  static int lifted(onednn::PlanBuilder& builder, int from, const memory::desc& wanted) {
    dnnl::primitive_attr attributes = onednn::PlanBuilder::attributes();
    attributes.set_zero_points_mask(DNNL_ARG_DST, 0);
    const int to = builder.scratch(wanted);
    builder.run(dnnl::reorder::primitive_desc(cpu_engine(), builder.desc(from), cpu_engine(), wanted, attributes),
                {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_DST, builder.number(kLift)}});
    return to;
  }

  static std::unique_ptr<Plan> built(const Graph& graph, const Quantized& q, const PlanOptions& options) {
    onednn::PlanBuilder builder(graph, options);
    Problem p;
    const dnnl::primitive_desc_base desc = q.is_convolution ? convolution(graph, q, p) : matmul(graph, q, p);
    if (!desc.get(true)) throw std::runtime_error("oneDNN has no such operation of integers");
    const auto number = [&](int t, const memory::desc& form) {
      return graph.tensor(t).value ? builder.baked(t, form) : builder.operand(t, form);
    };
    const int to = builder.result(q.y, p.y, desc.query_md(dnnl::query::dst_md));
    const memory::desc read = desc.query_md(dnnl::query::src_md);
    std::vector<std::pair<int, int>> arguments{
        {DNNL_ARG_SRC, lifts(graph, q) ? lifted(builder, builder.operand(q.x, p.x), read) : builder.loaded(q.x, p.x, read)},
        {DNNL_ARG_WEIGHTS, builder.loaded(q.w, p.w, desc.query_md(dnnl::query::weights_md))},
        {DNNL_ARG_BIAS, number(q.offset, p.offset)},
        {DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, number(q.factor, vector_desc(graph.tensor(q.factor).element_count()))},
        {DNNL_ARG_DST, to},
    };
    if (has_zero(graph, q)) {
      const memory::desc one = onednn::memory_of({1}, memory::data_type::s32, {1});
      const bool is_lifted = lifts(graph, q);
      const auto zero_point = [&] { return is_lifted ? lifted(builder, number(q.zero, one), one) : number(q.zero, one); };
      const int zero = q.zero < 0 ? builder.number(kLift) : zero_point();
      arguments.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, zero);
    }
    builder.run(desc, std::move(arguments));
    builder.store(q.y, p.y, to);
    return builder.finish(desc.impl_info_str());
  }
};

}  // namespace

const Engine& quantized_engine() {
  static const QuantizedEngine engine;
  return engine;
}

}  // namespace hipdnn_port
