// Constants reordered for oneDNN, shared by all plans that want the same order.
#pragma once

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

namespace hipdnn_port::onednn {

/// The bytes of a constant, stored at `from` as `stored` says, in the order `wanted`. Thread-safe. Kept while a plan holds the result: the
/// constant does not change as long as a plan for it lives, so plans of one model for other sizes find its weights packed.
std::shared_ptr<void> packed_weights(const void* from, const dnnl::memory::desc& stored, const dnnl::memory::desc& wanted);

}  // namespace hipdnn_port::onednn
