// Shape checks of operations, run when an operation is finalized. Each throws BAD_PARAM naming tensor, got and expected.
#pragma once

namespace hipdnn_port {

class OperationDescriptor;

void validate_convolution_forward(const OperationDescriptor& operation);
void validate_convolution_backward_data(const OperationDescriptor& operation);
void validate_convolution_backward_filter(const OperationDescriptor& operation);
void validate_resample(const OperationDescriptor& operation);
void validate_matmul(const OperationDescriptor& operation);
void validate_pointwise(const OperationDescriptor& operation);
void validate_reduction(const OperationDescriptor& operation);
void validate_batchnorm_inference(const OperationDescriptor& operation);
void validate_batchnorm_inference_variance(const OperationDescriptor& operation);
void validate_batchnorm(const OperationDescriptor& operation);
void validate_layernorm(const OperationDescriptor& operation);
void validate_rmsnorm(const OperationDescriptor& operation);
void validate_sdpa_forward(const OperationDescriptor& operation);

}  // namespace hipdnn_port
