// Which of cuDNN's engines may run a graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/engine.h"
#include "translate.h"
#include "vendor_handle.h"

namespace hipdnn_cuda {

/// How cuDNN is to run a graph. In the order in which one refers to the other: the last goes first.
struct Configured {
  std::shared_ptr<const CudnnGraph> graph;
  /// Where the engine was asked for by its number; cuDNN's own configurations bring theirs.
  std::optional<CudnnDescriptor> chosen;
  CudnnDescriptor configuration;
  std::int64_t engine = -1;
  /// By cuDNN's numbers for its knobs.
  std::vector<std::pair<std::int64_t, std::int64_t>> knobs;
};

/// What cuDNN's heuristics propose, best first, without what is distrusted or rounds f32 where the handle does not allow that; `reason` is why
/// the last one was left out. Throws std::runtime_error where cuDNN refuses the graph itself.
std::vector<std::shared_ptr<const Configured>> propose(const hipdnn_port::Graph& described, const VendorHandle& handle, std::string& reason);

/// One engine with cuDNN's defaults for its knobs. Throws std::runtime_error where it cannot be, or may not, run the graph.
std::shared_ptr<const Configured> configure(const hipdnn_port::Graph& described, const VendorHandle& handle, std::int64_t engine);

}  // namespace hipdnn_cuda
