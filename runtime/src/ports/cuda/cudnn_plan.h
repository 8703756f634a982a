// A plan of cuDNN as a plan of this library.
#pragma once

#include <memory>
#include <string_view>

#include "choose.h"
#include "frontend/engine.h"

namespace hipdnn_cuda {

/// `handle` is a VendorHandle. Throws std::runtime_error with cuDNN's reason.
std::unique_ptr<hipdnn_port::Plan> build_cudnn_plan(std::shared_ptr<const Configured> configured, const std::shared_ptr<void>& handle);

/// What a plan's `serialize` gave, made a plan again by cuDNN, without its graph. Throws std::runtime_error with the reason.
std::unique_ptr<hipdnn_port::Plan> restore_cudnn_plan(std::string_view serialized, const std::shared_ptr<void>& handle);

}  // namespace hipdnn_cuda
