// Recorded runs: the steps of a run as one graph of the device, replayed where the caller's addresses are those of the record.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "plan/device.h"

namespace hipdnn_rt {

struct GraphTraits {
  static void destroy(const Library& library, hipGraphExec_t raw) { library.hip().graph_exec_destroy(raw); }
};
/// A graph ready to be launched.
using GraphExecutable = Owned<hipGraphExec_t, GraphTraits>;

/// The graphs of one context, by the addresses of a run's arrays. Used by one thread at a time.
class GraphCache {
 public:
  explicit GraphCache(const Device& device) : device_(device) {}

  /// Queue a run on `stream`: a replay where these addresses have been recorded; recorded first where they have been seen once before; by
  /// `queue_steps` itself where they are new, so that libraries load what they need outside of a recording. Throws DeviceError.
  void run(std::span<std::byte* const> addresses, hipStream_t stream, const std::function<void()>& queue_steps);

 private:
  struct Record {
    std::vector<std::byte*> addresses;
    /// Null until it is recorded.
    GraphExecutable graph;
  };
  GraphExecutable record(hipStream_t stream, const std::function<void()>& queue_steps) const;

  const Device& device_;
  /// The last used first.
  std::vector<Record> records_;
};

}  // namespace hipdnn_rt
