// The samples, and how one becomes a descriptor.
#include "operation_samples.h"


namespace abi {
namespace {

SampleAttribute tensors(int name, Tensors dims) { return {.name = name, .value = std::move(dims)}; }
SampleAttribute longs(int name, std::vector<std::int64_t> values) { return {.name = name, .value = Integers{HIPDNN_TYPE_INT64, std::move(values)}}; }
SampleAttribute number(int name, hipdnnBackendAttributeType_t type, std::int64_t value) { return {.name = name, .value = Integers{type, {value}}}; }
SampleAttribute flag(int name, bool value) { return number(name, HIPDNN_TYPE_BOOLEAN, value ? 1 : 0); }
SampleAttribute in_float(int name) { return number(name, HIPDNN_TYPE_DATA_TYPE, HIPDNN_DATA_FLOAT); }
SampleAttribute optional(SampleAttribute attribute) {
  attribute.is_required = false;
  return attribute;
}

SampleAttribute needed_by_host(SampleAttribute attribute) {
  attribute.is_portable = false;
  return attribute;
}

std::vector<SampleAttribute> convolution(std::vector<SampleAttribute> operands) {
  const std::vector<SampleAttribute> common{longs(HIPDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {1, 0}),
                                            longs(HIPDNN_ATTR_CONVOLUTION_POST_PADDINGS, {1, 2}),
                                            longs(HIPDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {2, 1}),
                                            longs(HIPDNN_ATTR_CONVOLUTION_DILATIONS, {1, 2}),
                                            number(HIPDNN_ATTR_CONVOLUTION_CONV_MODE, HIPDNN_TYPE_CONVOLUTION_MODE, HIPDNN_CROSS_CORRELATION),
                                            in_float(HIPDNN_ATTR_CONVOLUTION_COMP_TYPE)};
  operands.insert(operands.end(), common.begin(), common.end());
  return operands;
}

// 8 input channels in 2 groups, filter 3 x 3: rows (9 + 1 + 1 - 2 - 1) / 2 + 1 = 5, columns (9 + 0 + 2 - 4 - 1) / 1 + 1 = 7.
const Dims image{2, 8, 9, 9};
const Dims filter{6, 4, 3, 3};
const Dims result{2, 6, 5, 7};
const Dims channels{1, 8, 1, 1};
const Dims one{1};

void add_contractions(std::vector<OperationSample>& samples) {
  samples.push_back({"convolution forward", HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                     HIPDNN_OPERATION_TYPE_CONVOLUTION_FORWARD_EXT,
                     convolution({tensors(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, {image}),
                                  tensors(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, {filter}),
                                  tensors(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, {result})})});
  samples.push_back({"convolution backward data", HIPDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                     HIPDNN_OPERATION_TYPE_CONVOLUTION_BACKWARD_DATA_EXT,
                     convolution({tensors(HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, {result}),
                                  tensors(HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, {filter}),
                                  tensors(HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, {image})})});
  samples.push_back({"convolution backward filter", HIPDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                     HIPDNN_OPERATION_TYPE_CONVOLUTION_BACKWARD_WEIGHTS_EXT,
                     convolution({tensors(HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, {image}),
                                  tensors(HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, {result}),
                                  tensors(HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, {filter})})});
  samples.push_back({"matmul", HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, HIPDNN_OPERATION_TYPE_MATMUL_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_MATMUL_ADESC, {{3, 4, 5}}), tensors(HIPDNN_ATTR_OPERATION_MATMUL_BDESC, {{1, 5, 6}}),
                      tensors(HIPDNN_ATTR_OPERATION_MATMUL_CDESC, {{3, 4, 6}}), in_float(HIPDNN_ATTR_MATMUL_COMP_TYPE)}});
}

void add_elementwise(std::vector<OperationSample>& samples) {
  samples.push_back({"pointwise", HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, HIPDNN_OPERATION_TYPE_POINTWISE_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, {image}), tensors(HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT, {image}),
                      number(HIPDNN_ATTR_POINTWISE_MODE, HIPDNN_TYPE_POINTWISE_MODE, HIPDNN_POINTWISE_RELU_FWD),
                      optional({HIPDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0.0F}), optional({HIPDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, 6.0F}),
                      optional({HIPDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0.125F}), optional({HIPDNN_ATTR_POINTWISE_SWISH_BETA, 1.5F}),
                      optional({HIPDNN_ATTR_POINTWISE_ELU_ALPHA, 0.5F}), optional({HIPDNN_ATTR_POINTWISE_SOFTPLUS_BETA, 2.0F}),
                      optional(longs(HIPDNN_ATTR_POINTWISE_AXIS, {1})), in_float(HIPDNN_ATTR_POINTWISE_MATH_PREC)}});
  samples.push_back({"reduction", HIPDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, HIPDNN_OPERATION_TYPE_REDUCTION_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_REDUCTION_XDESC, {image}), tensors(HIPDNN_ATTR_OPERATION_REDUCTION_YDESC, {{2, 1, 9, 1}}),
                      number(HIPDNN_ATTR_REDUCTION_OPERATOR, HIPDNN_TYPE_REDUCTION_OPERATOR_TYPE, HIPDNN_REDUCE_TENSOR_MAX),
                      optional(flag(HIPDNN_ATTR_REDUCTION_IS_DETERMINISTIC, true)), in_float(HIPDNN_ATTR_REDUCTION_COMP_TYPE)}});
  samples.push_back({"resample forward", HIPDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, HIPDNN_OPERATION_TYPE_RESAMPLE_FWD,
                     {tensors(HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, {image}),
                      tensors(HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, {{2, 8, 4, 5}}), longs(HIPDNN_ATTR_RESAMPLE_PRE_PADDINGS, {0, 1}),
                      longs(HIPDNN_ATTR_RESAMPLE_POST_PADDINGS, {0, 1}), longs(HIPDNN_ATTR_RESAMPLE_STRIDES, {2, 2}),
                      longs(HIPDNN_ATTR_RESAMPLE_WINDOW_DIMS, {2, 3}),
                      number(HIPDNN_ATTR_RESAMPLE_MODE, HIPDNN_TYPE_RESAMPLE_MODE, HIPDNN_RESAMPLE_MAXPOOL),
                      number(HIPDNN_ATTR_RESAMPLE_PADDING_MODE, HIPDNN_TYPE_PADDING_MODE, HIPDNN_PADDING_NEG_INF_PAD),
                      optional(flag(HIPDNN_ATTR_RESAMPLE_GENERATE_INDEX_EXT, false)), in_float(HIPDNN_ATTR_RESAMPLE_COMP_TYPE)}});
}

void add_norms(std::vector<OperationSample>& samples) {
  samples.push_back({"batch norm inference", HIPDNN_BACKEND_OPERATION_BATCHNORM_INFERENCE_DESCRIPTOR_EXT,
                     HIPDNN_OPERATION_TYPE_BATCHNORM_INFERENCE_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_X_EXT, {image}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_MEAN_EXT, {channels}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_INV_VARIANCE_EXT, {channels}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_SCALE_EXT, {channels}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_BIAS_EXT, {channels}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_Y_EXT, {image}), in_float(HIPDNN_ATTR_BATCHNORM_INF_COMP_TYPE_EXT)}});
  samples.push_back({"batch norm inference with variance", HIPDNN_BACKEND_OPERATION_BATCHNORM_INFERENCE_VARIANCE_DESCRIPTOR_EXT,
                     HIPDNN_OPERATION_TYPE_BATCHNORM_INFERENCE_VARIANCE_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_X_EXT, {image}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_MEAN_EXT, {channels}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_VARIANCE_EXT, {channels}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_SCALE_EXT, {channels}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_BIAS_EXT, {channels}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_Y_EXT, {image}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_EPSILON_EXT, {one}),
                      in_float(HIPDNN_ATTR_BATCHNORM_INF_VAR_COMP_TYPE_EXT)}});
  samples.push_back({"layer norm", HIPDNN_BACKEND_OPERATION_LAYERNORM_DESCRIPTOR_EXT, HIPDNN_OPERATION_TYPE_LAYERNORM_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_LAYERNORM_X_EXT, {{4, 16, 32}}), tensors(HIPDNN_ATTR_OPERATION_LAYERNORM_SCALE_EXT, {{1, 1, 32}}),
                      tensors(HIPDNN_ATTR_OPERATION_LAYERNORM_BIAS_EXT, {{1, 1, 32}}), tensors(HIPDNN_ATTR_OPERATION_LAYERNORM_EPSILON_EXT, {one}),
                      tensors(HIPDNN_ATTR_OPERATION_LAYERNORM_Y_EXT, {{4, 16, 32}}),
                      // Both or neither: each is needed beside the other.
                      tensors(HIPDNN_ATTR_OPERATION_LAYERNORM_MEAN_EXT, {{4, 16, 1}}),
                      tensors(HIPDNN_ATTR_OPERATION_LAYERNORM_INV_VARIANCE_EXT, {{4, 16, 1}}),
                      number(HIPDNN_ATTR_OPERATION_LAYERNORM_FWD_PHASE_EXT, HIPDNN_TYPE_NORM_FWD_PHASE, HIPDNN_NORM_FWD_TRAINING),
                      needed_by_host(longs(HIPDNN_ATTR_OPERATION_LAYERNORM_NORMALIZED_DIM_COUNT_EXT, {1})),
                      in_float(HIPDNN_ATTR_LAYERNORM_COMP_TYPE_EXT)}});
  samples.push_back({"rms norm", HIPDNN_BACKEND_OPERATION_RMSNORM_DESCRIPTOR_EXT, HIPDNN_OPERATION_TYPE_RMSNORM_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_RMSNORM_X_EXT, {{4, 16, 32}}), tensors(HIPDNN_ATTR_OPERATION_RMSNORM_SCALE_EXT, {{1, 1, 32}}),
                      tensors(HIPDNN_ATTR_OPERATION_RMSNORM_EPSILON_EXT, {one}), tensors(HIPDNN_ATTR_OPERATION_RMSNORM_Y_EXT, {{4, 16, 32}}),
                      optional(tensors(HIPDNN_ATTR_OPERATION_RMSNORM_BIAS_EXT, {{1, 1, 32}})),
                      optional(tensors(HIPDNN_ATTR_OPERATION_RMSNORM_INV_RMS_EXT, {{4, 16, 1}})),
                      number(HIPDNN_ATTR_OPERATION_RMSNORM_FWD_PHASE_EXT, HIPDNN_TYPE_NORM_FWD_PHASE, HIPDNN_NORM_FWD_TRAINING),
                      in_float(HIPDNN_ATTR_RMSNORM_COMP_TYPE_EXT)}});
}

void add_attention(std::vector<OperationSample>& samples) {
  const Dims heads{1, 2, 8, 16};
  samples.push_back({"attention forward", HIPDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, HIPDNN_OPERATION_TYPE_SDPA_FORWARD_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_SDPA_FWD_QDESC, {heads}), tensors(HIPDNN_ATTR_OPERATION_SDPA_FWD_KDESC, {heads}),
                      tensors(HIPDNN_ATTR_OPERATION_SDPA_FWD_VDESC, {heads}), tensors(HIPDNN_ATTR_OPERATION_SDPA_FWD_ODESC, {heads}),
                      optional(tensors(HIPDNN_ATTR_OPERATION_SDPA_FWD_ATTN_MASK_EXT, {{1, 1, 8, 8}})),
                      optional(tensors(HIPDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, {one})),
                      optional(tensors(HIPDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, {{1, 2, 8, 1}})),
                      optional(tensors(HIPDNN_ATTR_OPERATION_SDPA_FWD_SINK_TOKEN_EXT, {{1, 2, 1, 1}})),
                      optional(flag(HIPDNN_ATTR_SDPA_FWD_PADDING_MASK_EXT, false)),
                      optional(flag(HIPDNN_ATTR_SDPA_FWD_CAUSAL_MASK_EXT, true)), optional({HIPDNN_ATTR_SDPA_FWD_ATTN_SCALE_VALUE_EXT, 0.25F}),
                      optional(longs(HIPDNN_ATTR_SDPA_FWD_LEFT_BOUND_EXT, {4})),
                      optional(number(HIPDNN_ATTR_SDPA_FWD_MAX_SEQ_LEN_KV_EXT, HIPDNN_TYPE_INT32, 8)),
                      optional(number(HIPDNN_ATTR_SDPA_FWD_DIAGONAL_ALIGNMENT_EXT, HIPDNN_TYPE_DIAGONAL_ALIGNMENT_EXT,
                                      HIPDNN_DIAGONAL_ALIGNMENT_BOTTOM_RIGHT_EXT)),
                      optional(number(HIPDNN_ATTR_SDPA_FWD_IMPLEMENTATION_EXT, HIPDNN_TYPE_ATTENTION_IMPLEMENTATION_EXT,
                                      HIPDNN_ATTENTION_IMPLEMENTATION_AUTO_EXT)),
                      in_float(HIPDNN_ATTR_SDPA_FWD_COMP_TYPE_EXT)},
                     false});
  samples.push_back({"attention backward", HIPDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR_EXT, HIPDNN_OPERATION_TYPE_SDPA_BACKWARD_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_SDPA_BWD_Q_EXT, {heads}), tensors(HIPDNN_ATTR_OPERATION_SDPA_BWD_K_EXT, {heads}),
                      tensors(HIPDNN_ATTR_OPERATION_SDPA_BWD_V_EXT, {heads}), tensors(HIPDNN_ATTR_OPERATION_SDPA_BWD_O_EXT, {heads}),
                      tensors(HIPDNN_ATTR_OPERATION_SDPA_BWD_DO_EXT, {heads}), tensors(HIPDNN_ATTR_OPERATION_SDPA_BWD_STATS_EXT, {{1, 2, 8, 1}}),
                      tensors(HIPDNN_ATTR_OPERATION_SDPA_BWD_DQ_EXT, {heads}), tensors(HIPDNN_ATTR_OPERATION_SDPA_BWD_DK_EXT, {heads}),
                      tensors(HIPDNN_ATTR_OPERATION_SDPA_BWD_DV_EXT, {heads}), in_float(HIPDNN_ATTR_SDPA_BWD_COMP_TYPE_EXT)},
                     false});
}

void add_quantization(std::vector<OperationSample>& samples) {
  samples.push_back({"custom operation", HIPDNN_BACKEND_OPERATION_CUSTOM_OP_DESCRIPTOR_EXT, HIPDNN_OPERATION_TYPE_CUSTOM_OP_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_CUSTOM_OP_INPUTS_EXT, {{4}, {5}}), tensors(HIPDNN_ATTR_OPERATION_CUSTOM_OP_OUTPUTS_EXT, {{6}}),
                      {HIPDNN_ATTR_OPERATION_CUSTOM_OP_ID_EXT, std::string("gather")}, in_float(HIPDNN_ATTR_CUSTOM_OP_COMP_TYPE_EXT)},
                     false});
  samples.push_back({"block scale quantize", HIPDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR,
                     HIPDNN_OPERATION_TYPE_BLOCK_SCALE_QUANTIZE_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC, {{4, 64}}),
                      tensors(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC, {{4, 64}}),
                      tensors(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC, {{4, 2}}),
                      number(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE, HIPDNN_TYPE_INT32, 32),
                      optional(longs(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_AXIS_EXT, {1})),
                      flag(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_TRANSPOSE_EXT, false),
                      in_float(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_MATH_PREC)},
                     false});
  samples.push_back({"block scale dequantize", HIPDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR,
                     HIPDNN_OPERATION_TYPE_BLOCK_SCALE_DEQUANTIZE_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC, {{4, 64}}),
                      tensors(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC, {{4, 2}}),
                      tensors(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC, {{4, 64}}),
                      number(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE, HIPDNN_TYPE_INT32, 32),
                      flag(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_NEG_SCALE, false),
                      in_float(HIPDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC)},
                     false});
}

void add_training(std::vector<OperationSample>& samples) {
  samples.push_back({"batch norm", HIPDNN_BACKEND_OPERATION_BATCHNORM_DESCRIPTOR_EXT, HIPDNN_OPERATION_TYPE_BATCHNORM_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_X_EXT, {image}), tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_SCALE_EXT, {channels}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_BIAS_EXT, {channels}), tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_EPSILON_EXT, {one}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_Y_EXT, {image}),
                      optional(tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_PEER_STATS_EXT, {channels, channels})),
                      in_float(HIPDNN_ATTR_BATCHNORM_COMP_TYPE_EXT)},
                     false});
  samples.push_back({"batch norm backward", HIPDNN_BACKEND_OPERATION_BATCHNORM_BACKWARD_DESCRIPTOR_EXT,
                     HIPDNN_OPERATION_TYPE_BATCHNORM_BACKWARD_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_BACKWARD_DY_EXT, {image}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_BACKWARD_X_EXT, {image}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_BACKWARD_SCALE_EXT, {channels}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_BACKWARD_DX_EXT, {image}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_BACKWARD_DSCALE_EXT, {channels}),
                      tensors(HIPDNN_ATTR_OPERATION_BATCHNORM_BACKWARD_DBIAS_EXT, {channels}),
                      in_float(HIPDNN_ATTR_BATCHNORM_BACKWARD_COMP_TYPE_EXT)},
                     false});
  samples.push_back({"rms norm backward", HIPDNN_BACKEND_OPERATION_RMSNORM_BACKWARD_DESCRIPTOR_EXT,
                     HIPDNN_OPERATION_TYPE_RMSNORM_BACKWARD_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_RMSNORM_BACKWARD_DY_EXT, {{4, 32}}), tensors(HIPDNN_ATTR_OPERATION_RMSNORM_BACKWARD_X_EXT, {{4, 32}}),
                      tensors(HIPDNN_ATTR_OPERATION_RMSNORM_BACKWARD_SCALE_EXT, {{1, 32}}),
                      tensors(HIPDNN_ATTR_OPERATION_RMSNORM_BACKWARD_INV_RMS_EXT, {{4, 1}}),
                      tensors(HIPDNN_ATTR_OPERATION_RMSNORM_BACKWARD_DX_EXT, {{4, 32}}),
                      tensors(HIPDNN_ATTR_OPERATION_RMSNORM_BACKWARD_DSCALE_EXT, {{1, 32}}), in_float(HIPDNN_ATTR_RMSNORM_BACKWARD_COMP_TYPE_EXT)},
                     false});
  samples.push_back({"layer norm backward", HIPDNN_BACKEND_OPERATION_LAYERNORM_BACKWARD_DESCRIPTOR_EXT, HIPDNN_OPERATION_TYPE_NOT_SET_EXT,
                     {tensors(HIPDNN_ATTR_OPERATION_LAYERNORM_BACKWARD_DY_EXT, {{4, 32}}),
                      tensors(HIPDNN_ATTR_OPERATION_LAYERNORM_BACKWARD_X_EXT, {{4, 32}}),
                      tensors(HIPDNN_ATTR_OPERATION_LAYERNORM_BACKWARD_SCALE_EXT, {{1, 32}}),
                      tensors(HIPDNN_ATTR_OPERATION_LAYERNORM_BACKWARD_DX_EXT, {{4, 32}}),
                      tensors(HIPDNN_ATTR_OPERATION_LAYERNORM_BACKWARD_DSCALE_EXT, {{1, 32}}),
                      tensors(HIPDNN_ATTR_OPERATION_LAYERNORM_BACKWARD_DBIAS_EXT, {{1, 32}}),
                      longs(HIPDNN_ATTR_LAYERNORM_BACKWARD_NORMALIZED_DIM_COUNT_EXT, {1}), in_float(HIPDNN_ATTR_LAYERNORM_BACKWARD_COMP_TYPE_EXT)},
                     false});
}

void set_integers(Descriptor& made, int name, const Integers& integers) {
  if (integers.type == HIPDNN_TYPE_INT64) {
    made.integers(name, integers.values);
  } else if (integers.type == HIPDNN_TYPE_BOOLEAN) {
    made.flag(name, integers.values.at(0) != 0);
  } else {
    made.enumerator(name, integers.type, static_cast<int>(integers.values.at(0)));
  }
}

}  // namespace

std::vector<OperationSample> operation_samples() {
  std::vector<OperationSample> samples;
  add_contractions(samples);
  add_elementwise(samples);
  add_norms(samples);
  add_attention(samples);
  add_quantization(samples);
  add_training(samples);
  return samples;
}

Descriptor make_operation(const Library& library, const OperationSample& sample, int without) {
  Descriptor made(library, sample.type);
  std::int64_t uid = 0;
  for (const SampleAttribute& attribute : sample.attributes) {
    if (attribute.name == without) continue;
    if (const auto* operands = std::get_if<Tensors>(&attribute.value)) {
      std::vector<Descriptor> owned;
      std::vector<const Descriptor*> targets;
      for (const Dims& dims : *operands) owned.push_back(tensor(library, ++uid, dims));
      for (const Descriptor& target : owned) targets.push_back(&target);
      made.refer(attribute.name, targets);
    } else if (const auto* integers = std::get_if<Integers>(&attribute.value)) {
      set_integers(made, attribute.name, *integers);
    } else if (const auto* real = std::get_if<float>(&attribute.value)) {
      made.real(attribute.name, *real);
    } else {
      made.characters(attribute.name, std::get<std::string>(attribute.value));
    }
  }
  made.characters(HIPDNN_ATTR_OPERATION_NAME_EXT, sample.name);
  return made;
}

}  // namespace abi
