// Shape checks of normalizations.
#include <cstdint>
#include <utility>
#include <vector>

#include "names.h"
#include "operation_descriptor.h"
#include "status.h"
#include "validate.h"

namespace hipdnn_port {
namespace {

using Dims = std::vector<std::int64_t>;

void expect_one_element(const OperationDescriptor& operation, int name) {
  const Tensor* tensor = operation.find_tensor(name);
  if (tensor != nullptr && tensor->element_count() != 1) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(name), " is ", describe(*tensor), ", expected one element");
  }
}

/// [1, C, 1, ...] for an input [N, C, ...].
Dims per_channel(const OperationDescriptor& operation, const Tensor& x) {
  if (x.rank() < 2) fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": expected rank 2 or more, got ", describe(x));
  Dims dims(x.dims.size(), 1);
  dims[1] = x.dims[1];
  return dims;
}

/// Statistics are results of training alone.
void expect_training_for(const OperationDescriptor& operation, int phase, int name) {
  if (operation.has(name) && operation.integer(phase) != HIPDNN_NORM_FWD_TRAINING) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(name), " is written in the training phase only");
  }
}

}  // namespace

void validate_batchnorm_inference(const OperationDescriptor& operation) {
  const Tensor& x = operation.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_X_EXT);
  const Dims channels = per_channel(operation, x);
  for (const int name : {HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_MEAN_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_INV_VARIANCE_EXT,
                         HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_SCALE_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_BIAS_EXT}) {
    operation.expect_dims(name, channels);
  }
  operation.expect_dims(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_Y_EXT, x.dims);
}

void validate_batchnorm_inference_variance(const OperationDescriptor& operation) {
  const Tensor& x = operation.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_X_EXT);
  const Dims channels = per_channel(operation, x);
  for (const int name :
       {HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_MEAN_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_VARIANCE_EXT,
        HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_SCALE_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_BIAS_EXT}) {
    operation.expect_dims(name, channels);
  }
  expect_one_element(operation, HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_EPSILON_EXT);
  operation.expect_dims(HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_Y_EXT, x.dims);
}

void validate_batchnorm(const OperationDescriptor& operation) {
  const Tensor& x = operation.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_X_EXT);
  const Dims channels = per_channel(operation, x);
  for (const int name :
       {HIPDNN_ATTR_OPERATION_BATCHNORM_SCALE_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_BIAS_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_MEAN_EXT,
        HIPDNN_ATTR_OPERATION_BATCHNORM_INV_VARIANCE_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_PREV_RUNNING_MEAN_EXT,
        HIPDNN_ATTR_OPERATION_BATCHNORM_PREV_RUNNING_VARIANCE_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_NEXT_RUNNING_MEAN_EXT,
        HIPDNN_ATTR_OPERATION_BATCHNORM_NEXT_RUNNING_VARIANCE_EXT}) {
    operation.expect_dims(name, channels);
  }
  operation.expect_dims(HIPDNN_ATTR_OPERATION_BATCHNORM_Y_EXT, x.dims);
  expect_one_element(operation, HIPDNN_ATTR_OPERATION_BATCHNORM_EPSILON_EXT);
  expect_one_element(operation, HIPDNN_ATTR_OPERATION_BATCHNORM_MOMENTUM_EXT);
  for (const auto& [next, before] :
       {std::pair{HIPDNN_ATTR_OPERATION_BATCHNORM_NEXT_RUNNING_MEAN_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_PREV_RUNNING_MEAN_EXT},
        {HIPDNN_ATTR_OPERATION_BATCHNORM_NEXT_RUNNING_VARIANCE_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_PREV_RUNNING_VARIANCE_EXT}}) {
    if (operation.has(next) && (!operation.has(before) || !operation.has(HIPDNN_ATTR_OPERATION_BATCHNORM_MOMENTUM_EXT))) {
      fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(next), " needs ", attribute_name(before), " and ",
           attribute_name(HIPDNN_ATTR_OPERATION_BATCHNORM_MOMENTUM_EXT));
    }
  }
}

void validate_layernorm(const OperationDescriptor& operation) {
  const Tensor& x = operation.tensor(HIPDNN_ATTR_OPERATION_LAYERNORM_X_EXT);
  const std::int64_t normalized = operation.integer(HIPDNN_ATTR_OPERATION_LAYERNORM_NORMALIZED_DIM_COUNT_EXT);
  if (normalized < 1 || normalized > x.rank()) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(HIPDNN_ATTR_OPERATION_LAYERNORM_NORMALIZED_DIM_COUNT_EXT), " = ",
         normalized, ", expected 1 to ", x.rank());
  }
  Dims parameters = x.dims;
  Dims statistics = x.dims;
  const std::int64_t kept = x.rank() - normalized;
  for (std::int64_t i = 0; i < x.rank(); ++i) (i < kept ? parameters : statistics)[static_cast<std::size_t>(i)] = 1;
  operation.expect_dims(HIPDNN_ATTR_OPERATION_LAYERNORM_SCALE_EXT, parameters);
  operation.expect_dims(HIPDNN_ATTR_OPERATION_LAYERNORM_BIAS_EXT, parameters);
  operation.expect_dims(HIPDNN_ATTR_OPERATION_LAYERNORM_MEAN_EXT, statistics);
  operation.expect_dims(HIPDNN_ATTR_OPERATION_LAYERNORM_INV_VARIANCE_EXT, statistics);
  operation.expect_dims(HIPDNN_ATTR_OPERATION_LAYERNORM_Y_EXT, x.dims);
  expect_one_element(operation, HIPDNN_ATTR_OPERATION_LAYERNORM_EPSILON_EXT);
  if (operation.has(HIPDNN_ATTR_OPERATION_LAYERNORM_MEAN_EXT) != operation.has(HIPDNN_ATTR_OPERATION_LAYERNORM_INV_VARIANCE_EXT)) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": mean and inverse variance are set both or neither");
  }
  for (const int name : {HIPDNN_ATTR_OPERATION_LAYERNORM_MEAN_EXT, HIPDNN_ATTR_OPERATION_LAYERNORM_INV_VARIANCE_EXT}) {
    expect_training_for(operation, HIPDNN_ATTR_OPERATION_LAYERNORM_FWD_PHASE_EXT, name);
  }
}

void validate_rmsnorm(const OperationDescriptor& operation) {
  const Tensor& x = operation.tensor(HIPDNN_ATTR_OPERATION_RMSNORM_X_EXT);
  const Tensor& scale = operation.tensor(HIPDNN_ATTR_OPERATION_RMSNORM_SCALE_EXT);
  Dims statistics = x.dims;
  bool fits = scale.rank() == x.rank();
  for (std::size_t i = 0; fits && i < x.dims.size(); ++i) {
    fits = scale.dims[i] == 1 || scale.dims[i] == x.dims[i];
    if (scale.dims[i] == x.dims[i]) statistics[i] = 1;  // the scale spans exactly the normalized dims
  }
  if (!fits) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": each dim of the scale ", describe(scale), " must be 1 or that of ", describe(x));
  }
  operation.expect_dims(HIPDNN_ATTR_OPERATION_RMSNORM_BIAS_EXT, scale.dims);
  operation.expect_dims(HIPDNN_ATTR_OPERATION_RMSNORM_Y_EXT, x.dims);
  operation.expect_dims(HIPDNN_ATTR_OPERATION_RMSNORM_INV_RMS_EXT, statistics);
  expect_one_element(operation, HIPDNN_ATTR_OPERATION_RMSNORM_EPSILON_EXT);
  expect_training_for(operation, HIPDNN_ATTR_OPERATION_RMSNORM_FWD_PHASE_EXT, HIPDNN_ATTR_OPERATION_RMSNORM_INV_RMS_EXT);
}

}  // namespace hipdnn_port
