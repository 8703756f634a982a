#include "kernel_order.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "frontend/status.h"

namespace hipdnn_cuda {
namespace {

/// By the kernel in front, and by the one before it, should that in front have let the next one begin while it waited itself.
struct Written {
  std::array<std::vector<Extent>, 2> last;
  std::size_t next = 0;
};

/// Streams are few; handles of destroyed ones are given again.
constexpr std::size_t most_streams = 1024;

struct State {
  std::mutex guard;
  std::map<std::pair<int, CUstream>, Written> written;
  /// A byte per device to write, kept for good.
  std::map<int, CUdeviceptr> scratch;
};

State& state() {
  static State all;
  return all;
}

void check(CUresult status, const char* call) {
  if (status == CUDA_SUCCESS) return;
  const char* text = nullptr;
  driver()->get_error_string(status, &text);
  hipdnn_port::fail(HIPDNN_STATUS_EXECUTION_FAILED, call, ": ", text != nullptr ? text : "unknown error");
}

bool overlap(const Extent& one, const Extent& other) {
  const auto first = reinterpret_cast<std::uintptr_t>(one.begin), second = reinterpret_cast<std::uintptr_t>(other.begin);
  return first <= second ? second - first < one.bytes : first - second < other.bytes;
}

constexpr Extent everything{nullptr, std::numeric_limits<std::size_t>::max()};

/// With a lock on the state.
Written& written_on(CUstream stream) {
  if (state().written.size() >= most_streams) state().written.clear();
  return state().written[{chosen_device(), stream}];
}

void wait_for_all(CUstream stream) {
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
  CUdeviceptr& scratch = state().scratch[chosen_device()];
  if (scratch == 0) check(api.mem_alloc(&scratch, 1), "cuMemAlloc");
  check(api.memset_async(scratch, 0, 1, stream), "cuMemsetD8Async");
}

}  // namespace

void before_reading(const Extent& operand, CUstream stream) {
  const std::scoped_lock lock(state().guard);
  const auto found = state().written.find({chosen_device(), stream});
  if (found == state().written.end()) return;
  const auto is_operand = [&](const std::vector<Extent>& results) {
    return std::ranges::any_of(results, [&](const Extent& result) { return overlap(result, operand); });
  };
  if (std::ranges::none_of(found->second.last, is_operand)) return;
  wait_for_all(stream);
  for (auto& results : found->second.last) results.clear();
}

void after_plan(std::span<const std::pair<std::size_t, std::size_t>> results, void* const* pointers, CUstream stream) {
  const std::scoped_lock lock(state().guard);
  Written& written = written_on(stream);
  std::vector<Extent>& mine = written.last[written.next];
  mine.clear();
  for (const auto& [operand, bytes] : results) mine.push_back({static_cast<const std::byte*>(pointers[operand]), bytes});
  written.next = (written.next + 1) % written.last.size();
}

void after_launch(CUstream stream) {
  const std::scoped_lock lock(state().guard);
  Written& written = written_on(stream);
  written.last.front().assign(1, everything);
  written.last.back().clear();
  written.next = 1;
}

}  // namespace hipdnn_cuda
