#include "kernel_order.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace hipdnn_cuda {
namespace {

void check(CUresult status, const char* call) {
  if (status == CUDA_SUCCESS) return;
  const char* text = nullptr;
  driver()->get_error_string(status, &text);
  throw std::runtime_error(std::string(call) + ": " + (text != nullptr ? text : "unknown error"));
}

}  // namespace

KernelOrder::~KernelOrder() {
  if (scratch_ != 0 && bind_device() == CUDA_SUCCESS) driver()->mem_free(scratch_);
}

void KernelOrder::before_reading(const void* operand, CUstream stream) {
  if (operand == nullptr || std::ranges::find(written_, operand) == written_.end()) return;
  wait_for_all(stream);
  written_ = {};
}

void KernelOrder::after_writing(const void* result) {
  written_[next_] = result;
  next_ = (next_ + 1) % written_.size();
}

void KernelOrder::wait_for_all(CUstream stream) {
  const Driver& api = *driver();
  int status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  std::size_t count = 0;
  check(api.stream_get_capture_info(stream, &status, nullptr, &graph, &nodes, &count), "cuStreamGetCaptureInfo");
  if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    // A node that does nothing, and costs nothing when the graph is launched.
    CUgraphNode empty = nullptr;
    check(api.graph_add_empty_node(&empty, graph, nodes, count), "cuGraphAddEmptyNode");
    check(api.stream_update_capture_dependencies(stream, &empty, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES), "cuStreamUpdateCaptureDependencies");
    return;
  }
  if (scratch_ == 0) check(api.mem_alloc(&scratch_, 1), "cuMemAlloc");
  check(api.memset_async(scratch_, 0, 1, stream), "cuMemsetD8Async");
}

}  // namespace hipdnn_cuda
