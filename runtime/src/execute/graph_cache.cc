#include "execute/graph_cache.h"

#include <algorithm>

#include "device/error.h"

namespace hipdnn_rt {
namespace {

/// Combinations of arrays that callers alternate between, such as the two halves of a double buffer.
constexpr std::size_t kRecords = 8;

}  // namespace

void GraphCache::run(std::span<std::byte* const> addresses, hipStream_t stream, const std::function<void()>& queue_steps) {
  const auto known = std::ranges::find_if(records_, [&](const Record& record) { return std::ranges::equal(record.addresses, addresses); });
  if (known == records_.end()) {
    if (records_.size() == kRecords) records_.pop_back();
    records_.insert(records_.begin(), Record{{addresses.begin(), addresses.end()}, {}});
    return queue_steps();
  }
  std::rotate(records_.begin(), known, known + 1);
  Record& record = records_.front();
  if (!record.graph) record.graph = this->record(stream, queue_steps);
  const HipApi& hip = device_.library().hip();
  check(hip, hip.graph_launch(record.graph.get(), stream), "hipGraphLaunch");
}

GraphExecutable GraphCache::record(hipStream_t stream, const std::function<void()>& queue_steps) const {
  const HipApi& hip = device_.library().hip();
  check(hip, hip.stream_begin_capture(stream, hipStreamCaptureModeRelaxed), "hipStreamBeginCapture");
  hipGraph_t graph = nullptr;
  try {
    queue_steps();
  } catch (...) {
    hip.stream_end_capture(stream, &graph);  // the stream must leave the recording whatever happened
    if (graph != nullptr) hip.graph_destroy(graph);
    throw;
  }
  check(hip, hip.stream_end_capture(stream, &graph), "hipStreamEndCapture");
  hipGraphExec_t executable = nullptr;
  const hipError_t status = hip.graph_instantiate(&executable, graph, 0);
  hip.graph_destroy(graph);
  check(hip, status, "hipGraphInstantiateWithFlags");
  return {device_.shared_library(), executable};
}

}  // namespace hipdnn_rt
