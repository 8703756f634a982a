#include "translate.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <stdexcept>

#include "attention.h"
#include "elementwise.h"
#include "frontend/names.h"
#include "frontend/status.h"
#include "norms.h"
#include "tensors.h"
#include "values.h"

namespace hipdnn_cuda {
namespace {

using hipdnn_port::Graph;
using hipdnn_port::Node;
using hipdnn_port::Tensor;
using hipdnn_port::text;
using Name = hipdnnBackendAttributeName_t;

int data_type(hipdnnDataType_t type) { return cudnn_data_type(type).value(); }
int data_type(const Node& node, Name name) { return data_type(static_cast<hipdnnDataType_t>(node.integer(name))); }

/// Builds the descriptors of one graph.
class Translator {
 public:
  Translator(const Graph& graph, cudnnHandle_t handle) : graph_(graph), handle_(handle), fill_(rank_fill(graph)) {}

  CudnnGraph run() {
    // What is written otherwise may leave tensors behind; a pointer of another graph's tensor makes cuDNN refuse the pack.
    const std::set<int> used = used_tensors();
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      tensors_.push_back(used.contains(static_cast<int>(t)) ? add_tensor(graph_.tensors[t]) : nullptr);
    }
    for (const Node& node : graph_.nodes) add(node);
    CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_);
    graph.set_descriptors(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
    graph.finalize("the operation graph");
    return {std::move(parts_), std::move(graph), std::move(uids_), std::move(scalars_)};
  }

 private:
  std::set<int> used_tensors() const {
    std::set<int> used;
    for (const Node& node : graph_.nodes) {
      for (const auto& [name, tensors] : node.tensors) used.insert(tensors.begin(), tensors.end());
    }
    return used;
  }

  cudnnBackendDescriptor_t tensor(const Node& node, Name name) const { return tensors_[static_cast<std::size_t>(node.tensor(name))]; }

  cudnnBackendDescriptor_t keep(CudnnDescriptor&& made, std::string_view what) {
    made.finalize(what);
    parts_.push_back(std::move(made));
    return parts_.back().raw();
  }

  cudnnBackendDescriptor_t add_tensor(const Tensor& tensor) {
    const Shape shape = filled(tensor, fill_);
    CudnnDescriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    made.set_enumerator(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(tensor.dtype));
    made.set_integers(CUDNN_ATTR_TENSOR_DIMENSIONS, shape.dims);
    made.set_integers(CUDNN_ATTR_TENSOR_STRIDES, shape.strides);
    made.set_integer(CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor.uid);
    made.set_integer(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, tensor.byte_alignment);
    made.set_flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL, tensor.is_virtual);
    if (tensor.value) {
      made.set_flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
      scalars_.emplace_back(tensor.uid, *tensor.value);
    } else if (!tensor.is_virtual) {
      uids_.push_back(tensor.uid);
    }
    return keep(std::move(made), "tensor " + hipdnn_port::describe(tensor));
  }

  void add(const Node& node) {
    switch (node.type) {
      case HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR: return add_convolution(node);
      case HIPDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: return add_backward_data(node);
      case HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: return add_matmul(node);
      case HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: return add_pointwise(node);
      case HIPDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: return add_reduction(node);
      case HIPDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR: return add_resample(node);
      case HIPDNN_BACKEND_OPERATION_LAYERNORM_DESCRIPTOR_EXT:
        return add_norm(node, CUDNN_LAYER_NORM,
                        {{HIPDNN_ATTR_OPERATION_LAYERNORM_X_EXT, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC},
                         {HIPDNN_ATTR_OPERATION_LAYERNORM_SCALE_EXT, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC},
                         {HIPDNN_ATTR_OPERATION_LAYERNORM_BIAS_EXT, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC},
                         {HIPDNN_ATTR_OPERATION_LAYERNORM_EPSILON_EXT, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC},
                         {HIPDNN_ATTR_OPERATION_LAYERNORM_Y_EXT, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC}});
      case HIPDNN_BACKEND_OPERATION_RMSNORM_DESCRIPTOR_EXT:
        return add_norm(node, CUDNN_RMS_NORM,
                        {{HIPDNN_ATTR_OPERATION_RMSNORM_X_EXT, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC},
                         {HIPDNN_ATTR_OPERATION_RMSNORM_SCALE_EXT, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC},
                         {HIPDNN_ATTR_OPERATION_RMSNORM_BIAS_EXT, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC},
                         {HIPDNN_ATTR_OPERATION_RMSNORM_EPSILON_EXT, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC},
                         {HIPDNN_ATTR_OPERATION_RMSNORM_Y_EXT, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC}});
      default: throw std::runtime_error(hipdnn_port::descriptor_name(node.type) + " is not translated");
    }
  }

  void add_operation(CudnnDescriptor&& operation, const Node& node) {
    operations_.push_back(keep(std::move(operation), node.name.empty() ? hipdnn_port::descriptor_name(node.type) : "node '" + node.name + "'"));
  }

  /// One value per spatial dim, with `one` for the dims that were put in.
  std::vector<std::int64_t> spatial(const Node& node, Name name, std::int64_t one) const {
    std::vector<std::int64_t> values = node.ints(name);
    values.insert(values.begin(), fill_.count, one);
    return values;
  }

  cudnnBackendDescriptor_t convolution(const Node& node) {
    CudnnDescriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    const auto strides = spatial(node, HIPDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1);
    made.set_integer(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(strides.size()));
    made.set_enumerator(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(node, HIPDNN_ATTR_CONVOLUTION_COMP_TYPE));
    made.set_enumerator(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                        node.integer(HIPDNN_ATTR_CONVOLUTION_CONV_MODE) == HIPDNN_CONVOLUTION ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION);
    made.set_integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides);
    made.set_integers(CUDNN_ATTR_CONVOLUTION_DILATIONS, spatial(node, HIPDNN_ATTR_CONVOLUTION_DILATIONS, 1));
    made.set_integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, spatial(node, HIPDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0));
    made.set_integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, spatial(node, HIPDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0));
    return keep(std::move(made), "the convolution");
  }

  /// cuDNN's scale of the result and of what was there before.
  static void set_scales(CudnnDescriptor& operation, cudnnBackendAttributeName_t alpha, cudnnBackendAttributeName_t beta) {
    const float one = 1, zero = 0;
    operation.set(alpha, CUDNN_TYPE_FLOAT, 1, &one);
    operation.set(beta, CUDNN_TYPE_FLOAT, 1, &zero);
  }

  void add_convolution(const Node& node) {
    CudnnDescriptor made(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    made.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution(node));
    made.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, tensor(node, HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X));
    made.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, tensor(node, HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W));
    made.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, tensor(node, HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y));
    set_scales(made, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
    add_operation(std::move(made), node);
  }

  void add_backward_data(const Node& node) {
    CudnnDescriptor made(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
    made.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, convolution(node));
    made.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, tensor(node, HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY));
    made.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, tensor(node, HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W));
    made.set_descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, tensor(node, HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX));
    set_scales(made, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
    add_operation(std::move(made), node);
  }

  void add_matmul(const Node& node) {
    CudnnDescriptor function(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    function.set_enumerator(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(node, HIPDNN_ATTR_MATMUL_COMP_TYPE));
    CudnnDescriptor made(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    made.set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_DESC, keep(std::move(function), "the matrix product"));
    made.set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensor(node, HIPDNN_ATTR_OPERATION_MATMUL_ADESC));
    made.set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensor(node, HIPDNN_ATTR_OPERATION_MATMUL_BDESC));
    made.set_descriptor(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensor(node, HIPDNN_ATTR_OPERATION_MATMUL_CDESC));
    add_operation(std::move(made), node);
  }

  static void set_function(CudnnDescriptor& function, const Node& node) {
    constexpr std::pair<Name, cudnnBackendAttributeName_t> numbers[] = {
        {HIPDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP},
        {HIPDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP},
        {HIPDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE},
        {HIPDNN_ATTR_POINTWISE_ELU_ALPHA, CUDNN_ATTR_POINTWISE_ELU_ALPHA},
        {HIPDNN_ATTR_POINTWISE_SOFTPLUS_BETA, CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA},
        {HIPDNN_ATTR_POINTWISE_SWISH_BETA, CUDNN_ATTR_POINTWISE_SWISH_BETA},
    };
    for (const auto& [ours, theirs] : numbers) {
      if (node.has(ours)) function.set_number(theirs, node.real_or(ours, 0));
    }
    if (node.has(HIPDNN_ATTR_POINTWISE_AXIS)) function.set_integer(CUDNN_ATTR_POINTWISE_AXIS, node.integer(HIPDNN_ATTR_POINTWISE_AXIS));
  }

  void add_pointwise(const Node& node) {
    constexpr std::pair<Name, cudnnBackendAttributeName_t> inputs[] = {
        {HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, CUDNN_ATTR_OPERATION_POINTWISE_XDESC},
        {HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT, CUDNN_ATTR_OPERATION_POINTWISE_BDESC},
        {HIPDNN_ATTR_OPERATION_POINTWISE_IN_2_EXT, CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
    };
    CudnnDescriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    function.set_enumerator(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
                            cudnn_pointwise(static_cast<int>(node.integer(HIPDNN_ATTR_POINTWISE_MODE))).value());
    function.set_enumerator(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, data_type(node, HIPDNN_ATTR_POINTWISE_MATH_PREC));
    set_function(function, node);
    CudnnDescriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    made.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, keep(std::move(function), "the pointwise function"));
    for (const auto& [ours, theirs] : inputs) {
      if (node.has_tensor(ours)) made.set_descriptor(theirs, tensor(node, ours));
    }
    made.set_descriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensor(node, HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT));
    add_operation(std::move(made), node);
  }

  void add_reduction(const Node& node) {
    CudnnDescriptor function(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    function.set_enumerator(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
                            cudnn_reduction(static_cast<int>(node.integer(HIPDNN_ATTR_REDUCTION_OPERATOR))).value());
    function.set_enumerator(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(node, HIPDNN_ATTR_REDUCTION_COMP_TYPE));
    CudnnDescriptor made(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    made.set_descriptor(CUDNN_ATTR_OPERATION_REDUCTION_DESC, keep(std::move(function), "the reduction"));
    made.set_descriptor(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensor(node, HIPDNN_ATTR_OPERATION_REDUCTION_XDESC));
    made.set_descriptor(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensor(node, HIPDNN_ATTR_OPERATION_REDUCTION_YDESC));
    add_operation(std::move(made), node);
  }

  void add_resample(const Node& node) {
    CudnnDescriptor function(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
    const auto window = spatial(node, HIPDNN_ATTR_RESAMPLE_WINDOW_DIMS, 1);
    const int mode = cudnn_resample(static_cast<int>(node.integer(HIPDNN_ATTR_RESAMPLE_MODE))).value();
    const bool is_max = mode == CUDNN_RESAMPLE_MAXPOOL;
    function.set_enumerator(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, mode);
    function.set_enumerator(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(node, HIPDNN_ATTR_RESAMPLE_COMP_TYPE));
    function.set_enumerator(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, CUDNN_PROPAGATE_NAN);
    function.set_enumerator(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, is_max ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD);
    function.set_integer(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, static_cast<std::int64_t>(window.size()));
    function.set_integers(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, window);
    function.set_integers(CUDNN_ATTR_RESAMPLE_STRIDES, spatial(node, HIPDNN_ATTR_RESAMPLE_STRIDES, 1));
    function.set_integers(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, spatial(node, HIPDNN_ATTR_RESAMPLE_PRE_PADDINGS, 0));
    function.set_integers(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, spatial(node, HIPDNN_ATTR_RESAMPLE_POST_PADDINGS, 0));
    CudnnDescriptor made(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
    made.set_descriptor(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, keep(std::move(function), "the resampling"));
    made.set_descriptor(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, tensor(node, HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC));
    made.set_descriptor(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, tensor(node, HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC));
    add_operation(std::move(made), node);
  }

  void add_norm(const Node& node, int mode, std::initializer_list<std::pair<Name, cudnnBackendAttributeName_t>> tensors) {
    CudnnDescriptor made(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    made.set_enumerator(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, mode);
    made.set_enumerator(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, CUDNN_NORM_FWD_INFERENCE);
    for (const auto& [ours, theirs] : tensors) {
      if (node.has_tensor(ours)) made.set_descriptor(theirs, tensor(node, ours));
    }
    add_operation(std::move(made), node);
  }

  const Graph& graph_;
  cudnnHandle_t handle_;
  RankFill fill_;
  std::vector<CudnnDescriptor> parts_;
  std::vector<cudnnBackendDescriptor_t> tensors_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  std::vector<std::int64_t> uids_;
  std::vector<std::pair<std::int64_t, std::vector<std::byte>>> scalars_;
};

std::optional<std::string> why_not(const Node& node) {
  switch (node.type) {
    case HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case HIPDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    case HIPDNN_BACKEND_OPERATION_BATCHNORM_INFERENCE_DESCRIPTOR_EXT:
    case HIPDNN_BACKEND_OPERATION_BATCHNORM_INFERENCE_VARIANCE_DESCRIPTOR_EXT:
    case HIPDNN_BACKEND_OPERATION_LAYERNORM_DESCRIPTOR_EXT:
    case HIPDNN_BACKEND_OPERATION_RMSNORM_DESCRIPTOR_EXT: return std::nullopt;
    case HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      if (!cudnn_pointwise(static_cast<int>(node.integer(HIPDNN_ATTR_POINTWISE_MODE)))) return "cuDNN has no such pointwise mode";
      return std::nullopt;
    case HIPDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      if (!cudnn_reduction(static_cast<int>(node.integer(HIPDNN_ATTR_REDUCTION_OPERATOR)))) return "cuDNN has no such reduction";
      return std::nullopt;
    case HIPDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR:
      if (node.has_tensor(HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC)) return "indices of maxima are not translated";
      return std::nullopt;
    default: return hipdnn_port::descriptor_name(node.type) + " is not translated";
  }
}

std::size_t extent_bytes(const Tensor& tensor) {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < tensor.dims.size(); ++d) last += (tensor.dims[d] - 1) * tensor.strides[d];
  return static_cast<std::size_t>(last + 1) * hipdnn_port::element_bytes(tensor.dtype);
}

/// The graph with what cuDNN has no operation for in operations that it has, or in another form.
Graph as_cudnn_writes_it(const Graph& graph) {
  if (is_attention(graph)) return written_out(graph);
  if (is_row_norm(graph)) return with_rows_as_channels(graph);
  const Graph written = has_batch_norms(graph) ? with_batch_norms_written_out(graph) : graph;
  return is_elementwise(written) ? with_merged_dims(written) : written;
}

void find_operands(const Graph& graph, CudnnGraph& translated) {
  for (const Node& node : graph.nodes) {
    for (const auto& [attribute, tensors] : node.tensors) {
      const bool is_result = hipdnn_port::is_output_attribute(node.type, attribute);
      if (!is_result && node.type != HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) continue;
      for (const int tensor : tensors) {
        const Tensor& operand = graph.tensor(tensor);
        const auto found = std::ranges::find(translated.uids, operand.uid);
        if (found == translated.uids.end()) continue;
        (is_result ? translated.results : translated.epilogue)
            .emplace_back(static_cast<std::size_t>(found - translated.uids.begin()), extent_bytes(operand));
      }
    }
  }
}

}  // namespace

std::optional<std::string> why_not_expressible(const Graph& graph) {
  for (const Tensor& tensor : graph.tensors) {
    if (!cudnn_data_type(tensor.dtype)) return text("cuDNN has no ", hipdnn_port::data_type_name(tensor.dtype));
    if (tensor.rank() > 8) return text("rank ", tensor.rank(), ", at most 8");
  }
  if (is_attention(graph)) return why_not_written_out(graph);
  if (auto reason = why_not_normalized(graph)) return reason;
  for (const Node& node : graph.nodes) {
    if (auto reason = why_not(node)) return reason;
  }
  const Graph written = has_batch_norms(graph) ? with_batch_norms_written_out(graph) : graph;
  return is_elementwise(written) ? why_not_elementwise(written) : std::nullopt;
}

CudnnGraph translate(const Graph& graph, cudnnHandle_t handle) {
  const Graph written = as_cudnn_writes_it(graph);
  CudnnGraph translated = Translator(written, handle).run();
  find_operands(written, translated);
  return translated;
}

}  // namespace hipdnn_cuda
