// Values of hipDNN's enumerations as cuDNN's, by name. Nothing where cuDNN has no such value.
#pragma once

#include <optional>

#include "cudnn_backend_abi.h"
#include "hipdnn_backend.h"

namespace hipdnn_cuda {

std::optional<int> cudnn_data_type(hipdnnDataType_t type);
std::optional<int> cudnn_pointwise(int mode);
std::optional<int> cudnn_reduction(int operation);
std::optional<int> cudnn_resample(int mode);

}  // namespace hipdnn_cuda
