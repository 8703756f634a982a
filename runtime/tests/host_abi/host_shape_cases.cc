// What this library refuses at finalize: shapes that do not fit, graphs that are none. Each message names the trouble.
#include <variant>

#include "cases.h"
#include "models.h"
#include "operation_samples.h"

namespace abi {
namespace {

/// A valid operation, one attribute of it replaced, and a part of the message that must come.
struct Misfit {
  std::string operation;
  int attribute;
  std::variant<Tensors, Integers> replacement;
  std::string message;
};

Integers longs(std::vector<std::int64_t> values) { return {HIPDNN_TYPE_INT64, std::move(values)}; }

std::vector<Misfit> window_misfits() {
  const std::string conv = "convolution forward";
  return {
      {conv, HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, Tensors{{6, 3, 3, 3}}, "multiple of dim 1"},
      {conv, HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, Tensors{{7, 4, 3, 3}}, "2 groups"},
      {conv, HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, Tensors{{6, 4, 3}}, "differ in rank"},
      {conv, HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, Tensors{{2, 8}}, "rank 3 to 5"},
      {conv, HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, Tensors{{2, 8, 1, 1}}, "spatial dim"},
      {conv, HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, Tensors{{2, 6, 5, 8}}, "spatial dim 1"},
      {conv, HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, Tensors{{1, 6, 5, 7}}, "must begin with [2, 6]"},
      {conv, HIPDNN_ATTR_CONVOLUTION_PRE_PADDINGS, longs({-1, 0}), "at least 0"},
      {conv, HIPDNN_ATTR_CONVOLUTION_FILTER_STRIDES, longs({0, 1}), "at least 1"},
      {conv, HIPDNN_ATTR_CONVOLUTION_DILATIONS, longs({1, 0}), "at least 1"},
      {conv, HIPDNN_ATTR_CONVOLUTION_DILATIONS, longs({1, std::int64_t{1} << 40}), "too large"},
      {conv, HIPDNN_ATTR_CONVOLUTION_PRE_PADDINGS, longs({1}), "one value per spatial dim"},
      {"convolution backward data", HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, Tensors{{2, 8, 20, 9}}, "spatial dim 0"},
      {"convolution backward filter", HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, Tensors{{2, 5, 5, 7}}, "must begin with"},
      {"resample forward", HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, Tensors{{2, 8, 5, 5}}, "spatial dim 0"},
      {"resample forward", HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, Tensors{{2, 7, 4, 5}}, "batch and channels"},
      {"resample forward", HIPDNN_ATTR_RESAMPLE_WINDOW_DIMS, longs({2, 0}), "at least 1"},
      {"resample forward", HIPDNN_ATTR_RESAMPLE_GENERATE_INDEX_EXT, Integers{HIPDNN_TYPE_BOOLEAN, {1}}, "index tensor"},
  };
}

std::vector<Misfit> other_misfits() {
  return {
      {"matmul", HIPDNN_ATTR_OPERATION_MATMUL_ADESC, Tensors{{3, 4, 6}}, "last dim of A"},
      {"matmul", HIPDNN_ATTR_OPERATION_MATMUL_BDESC, Tensors{{2, 5, 6}}, "batch dim 0"},
      {"matmul", HIPDNN_ATTR_OPERATION_MATMUL_BDESC, Tensors{{5, 6}}, "one common rank"},
      {"matmul", HIPDNN_ATTR_OPERATION_MATMUL_CDESC, Tensors{{3, 6, 4}}, "must end in [4, 6]"},
      {"matmul", HIPDNN_ATTR_OPERATION_MATMUL_CDESC, Tensors{{1, 4, 6}}, "batch dim 0"},
      {"pointwise", HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, Tensors{{2, 4, 9, 9}}, "does not broadcast"},
      {"pointwise", HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, Tensors{{1, 2, 8, 9, 9}}, "does not broadcast"},
      {"pointwise", HIPDNN_ATTR_POINTWISE_MODE, Integers{HIPDNN_TYPE_POINTWISE_MODE, {HIPDNN_POINTWISE_ADD}}, "takes 2 inputs"},
      {"pointwise", HIPDNN_ATTR_POINTWISE_MODE, Integers{HIPDNN_TYPE_POINTWISE_MODE, {HIPDNN_POINTWISE_BINARY_SELECT}}, "takes 3 inputs"},
      {"reduction", HIPDNN_ATTR_OPERATION_REDUCTION_YDESC, Tensors{{2, 2, 9, 1}}, "must be 1"},
      {"reduction", HIPDNN_ATTR_OPERATION_REDUCTION_YDESC, Tensors{{2, 9, 1}}, "must be 1"},
      {"batch norm inference", HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_SCALE_EXT, Tensors{{1, 9, 1, 1}}, "expected dims [1, 8, 1, 1]"},
      {"batch norm inference", HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_Y_EXT, Tensors{{2, 8, 9, 8}}, "expected dims [2, 8, 9, 9]"},
      {"batch norm inference with variance", HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_EPSILON_EXT, Tensors{{2}}, "one element"},
      {"batch norm", HIPDNN_ATTR_OPERATION_BATCHNORM_BIAS_EXT, Tensors{{1, 9, 1, 1}}, "expected dims [1, 8, 1, 1]"},
      {"batch norm", HIPDNN_ATTR_OPERATION_BATCHNORM_EPSILON_EXT, Tensors{{2}}, "one element"},
      {"layer norm", HIPDNN_ATTR_OPERATION_LAYERNORM_NORMALIZED_DIM_COUNT_EXT, longs({4}), "expected 1 to 3"},
      {"layer norm", HIPDNN_ATTR_OPERATION_LAYERNORM_NORMALIZED_DIM_COUNT_EXT, longs({2}), "expected dims [1, 16, 32]"},
      {"layer norm", HIPDNN_ATTR_OPERATION_LAYERNORM_MEAN_EXT, Tensors{{4, 16, 32}}, "expected dims [4, 16, 1]"},
      {"layer norm", HIPDNN_ATTR_OPERATION_LAYERNORM_FWD_PHASE_EXT, Integers{HIPDNN_TYPE_NORM_FWD_PHASE, {HIPDNN_NORM_FWD_INFERENCE}},
       "training phase"},
      {"rms norm", HIPDNN_ATTR_OPERATION_RMSNORM_SCALE_EXT, Tensors{{1, 1, 31}}, "scale"},
      {"rms norm", HIPDNN_ATTR_OPERATION_RMSNORM_INV_RMS_EXT, Tensors{{4, 16, 32}}, "expected dims [4, 16, 1]"},
  };
}

std::vector<Misfit> attention_misfits() {
  const std::string sdpa = "attention forward";
  return {
      {sdpa, HIPDNN_ATTR_OPERATION_SDPA_FWD_QDESC, Tensors{{2, 8, 16}}, "rank 4"},
      {sdpa, HIPDNN_ATTR_OPERATION_SDPA_FWD_KDESC, Tensors{{1, 2, 8, 15}}, "last dims"},
      {sdpa, HIPDNN_ATTR_OPERATION_SDPA_FWD_KDESC, Tensors{{2, 2, 8, 16}}, "batch of"},
      {sdpa, HIPDNN_ATTR_OPERATION_SDPA_FWD_KDESC, Tensors{{1, 3, 8, 16}}, "multiple"},
      {sdpa, HIPDNN_ATTR_OPERATION_SDPA_FWD_VDESC, Tensors{{1, 2, 9, 16}}, "as many keys as values"},
      {sdpa, HIPDNN_ATTR_OPERATION_SDPA_FWD_ODESC, Tensors{{1, 2, 8, 17}}, "expected dims [1, 2, 8, 16]"},
      {sdpa, HIPDNN_ATTR_OPERATION_SDPA_FWD_ATTN_MASK_EXT, Tensors{{8, 8}}, "each dim must be 1 or that of [1, 2, 8, 8]"},
      {sdpa, HIPDNN_ATTR_OPERATION_SDPA_FWD_ATTN_MASK_EXT, Tensors{{1, 1, 8, 7}}, "each dim must be 1 or that of [1, 2, 8, 8]"},
      {sdpa, HIPDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, Tensors{{2}}, "one element"},
      {sdpa, HIPDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, Tensors{{1, 2, 8, 8}}, "expected dims [1, 2, 8, 1]"},
      {sdpa, HIPDNN_ATTR_OPERATION_SDPA_FWD_SINK_TOKEN_EXT, Tensors{{1, 1, 8, 1}}, "expected dims [1, 2, 1, 1]"},
      {sdpa, HIPDNN_ATTR_SDPA_FWD_LEFT_BOUND_EXT, longs({0}), "at least 1"},
      {sdpa, HIPDNN_ATTR_SDPA_FWD_PADDING_MASK_EXT, Integers{HIPDNN_TYPE_BOOLEAN, {1}}, "exactly when"},
  };
}

OperationSample sample_named(const std::string& name) {
  for (OperationSample& sample : operation_samples()) {
    if (sample.name == name) return std::move(sample);
  }
  throw std::runtime_error("no sample named " + name);
}

void test_misfit_is_refused(const Library& library, const Misfit& misfit) {
  OperationSample sample = sample_named(misfit.operation);
  for (SampleAttribute& attribute : sample.attributes) {
    if (attribute.name != misfit.attribute) continue;
    std::visit([&](const auto& replacement) { attribute.value = replacement; }, misfit.replacement);
  }
  check::equal(make_operation(library, sample).try_finalize(), HIPDNN_STATUS_BAD_PARAM);
  check::contains(library.last_error(), misfit.message);
  check::contains(library.last_error(), sample.name);
}

/// A tensor with these attributes, unfinalized.
Descriptor loose_tensor(const Library& library, const Dims& dims, const Dims& strides) {
  Descriptor made(library, HIPDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.integers(HIPDNN_ATTR_TENSOR_UNIQUE_ID, {1})
      .data_type(HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_DATA_FLOAT)
      .integers(HIPDNN_ATTR_TENSOR_DIMENSIONS, dims)
      .integers(HIPDNN_ATTR_TENSOR_STRIDES, strides);
  return made;
}

void expect_refusal(const Library& library, const Descriptor& made, const std::string& message) {
  check::equal(made.try_finalize(), HIPDNN_STATUS_BAD_PARAM);
  check::contains(library.last_error(), message);
}

void test_odd_tensors_are_refused(const Library& library) {
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  expect_refusal(library, loose_tensor(library, {2, 0}, {1, 1}), "must be positive");
  expect_refusal(library, loose_tensor(library, {2, 2}, {-2, 1}), "must not be negative");
  expect_refusal(library, loose_tensor(library, {huge, 8}, {8, 1}), "address range");
  expect_refusal(library, loose_tensor(library, {2, 2}, {huge, huge}), "address range");
  check::equal(loose_tensor(library, {2, 3}, {0, 1}).try_finalize(), HIPDNN_STATUS_SUCCESS, "a broadcast view");
  Descriptor nameless(library, HIPDNN_BACKEND_TENSOR_DESCRIPTOR);
  nameless.data_type(HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_DATA_FLOAT);
  expect_refusal(library, nameless, "HIPDNN_ATTR_TENSOR_UNIQUE_ID");
}

void test_odd_values_are_refused(const Library& library) {
  const float value = 1.0F;
  Descriptor untyped(library, HIPDNN_BACKEND_TENSOR_DESCRIPTOR);
  check::equal(untyped.set(HIPDNN_ATTR_TENSOR_VALUE_EXT, HIPDNN_TYPE_CHAR, 4, &value), HIPDNN_STATUS_BAD_PARAM, "before the data type");
  Descriptor wide = loose_tensor(library, {2}, {1});
  check::equal(wide.set(HIPDNN_ATTR_TENSOR_VALUE_EXT, HIPDNN_TYPE_CHAR, 3, &value), HIPDNN_STATUS_BAD_PARAM, "3 bytes of a float");
  check::contains(library.last_error(), "expected 4 bytes");
  check::equal(wide.set(HIPDNN_ATTR_TENSOR_VALUE_EXT, HIPDNN_TYPE_CHAR, 4, &value), HIPDNN_STATUS_SUCCESS);
  expect_refusal(library, wide, "must be one element");
  Descriptor is_virtual = loose_tensor(library, {1}, {1});
  is_virtual.characters(HIPDNN_ATTR_TENSOR_VALUE_EXT, std::string(4, '\0')).flag(HIPDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  expect_refusal(library, is_virtual, "cannot be virtual");
  Descriptor retyped = loose_tensor(library, {1}, {1});
  retyped.characters(HIPDNN_ATTR_TENSOR_VALUE_EXT, std::string(4, '\0')).data_type(HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_DATA_HALF);
  expect_refusal(library, retyped, "4 bytes, expected 2");
  const std::int64_t alignment = 24;
  check::equal(loose_tensor(library, {1}, {1}).set(HIPDNN_ATTR_TENSOR_BYTE_ALIGNMENT, HIPDNN_TYPE_INT64, 1, &alignment),
               HIPDNN_STATUS_BAD_PARAM);
  const int no_type = 99;
  check::equal(untyped.set(HIPDNN_ATTR_TENSOR_DATA_TYPE, HIPDNN_TYPE_DATA_TYPE, 1, &no_type), HIPDNN_STATUS_BAD_PARAM);
  check::contains(library.last_error(), "99");
}

/// Finalizes a graph of these operations and expects it to be refused.
void expect_no_graph(const Library& library, const std::vector<const Descriptor*>& operations, const std::string& message) {
  const Handle handle(library);
  Descriptor made = graph(library, operations);
  expect_refusal(library, made.handle(HIPDNN_ATTR_OPERATIONGRAPH_HANDLE, handle), message);
}

void test_odd_graphs_are_refused(const Library& library) {
  const Descriptor in = tensor(library, 1, {4});
  const Descriptor out = tensor(library, 2, {4});
  const Descriptor never_written = tensor(library, 3, {4}, true);
  const Descriptor scalar = baked(library, 4, 1.0F);
  Descriptor overlapping = loose_tensor(library, {4}, {0});
  overlapping.finalize();
  const Descriptor read = std::move(pointwise(library, HIPDNN_POINTWISE_ABS, {&in}, out).finalize());
  const Descriptor again = std::move(pointwise(library, HIPDNN_POINTWISE_NEG, {&in}, out).finalize());
  const Descriptor dangling = std::move(pointwise(library, HIPDNN_POINTWISE_ABS, {&never_written}, out).finalize());
  const Descriptor in_place = std::move(pointwise(library, HIPDNN_POINTWISE_ABS, {&in}, in).finalize());
  const Descriptor onto_value = std::move(pointwise(library, HIPDNN_POINTWISE_ABS, {&scalar}, scalar).finalize());
  const Descriptor overlapped = std::move(pointwise(library, HIPDNN_POINTWISE_ABS, {&out}, overlapping).finalize());
  expect_no_graph(library, {&read, &again}, "an earlier operation writes");
  expect_no_graph(library, {&dangling}, "no earlier operation writes");
  expect_no_graph(library, {&in_place}, "an earlier operation reads");
  expect_no_graph(library, {&onto_value}, "writes");
  expect_no_graph(library, {&overlapped}, "stride 0");
}

/// AMD's library leaves it to its providers.
void test_operations_out_of_order_are_refused(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  Descriptor made = graph(library, {&model.relu, &model.add});
  made.handle(HIPDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  check::that(made.try_finalize() != HIPDNN_STATUS_SUCCESS, "relu comes before the sum it reads");
}

}  // namespace

void add_host_shape_cases(check::Suite& suite, const Library& library) {
  int index = 0;
  for (const auto& misfits : {window_misfits(), other_misfits(), attention_misfits()}) {
    for (const Misfit& misfit : misfits) {
      std::string name = std::string("host shape: misfit ") + std::to_string(index++) + ": " + misfit.operation + ": " + misfit.message;
      suite.add(std::move(name), [&library, misfit] { test_misfit_is_refused(library, misfit); });
    }
  }
  suite.add("host shape: operations out of order are refused", [&] { test_operations_out_of_order_are_refused(library); });
  suite.add("host shape: odd tensors are refused", [&] { test_odd_tensors_are_refused(library); });
  suite.add("host shape: odd values are refused", [&] { test_odd_values_are_refused(library); });
  suite.add("host shape: odd graphs are refused", [&] { test_odd_graphs_are_refused(library); });
}

}  // namespace abi
