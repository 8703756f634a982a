// A hipDNN graph as cuDNN descriptors. cuDNN keeps what one hipDNN operation says in two descriptors (a convolution and the operation that uses
// it); values of enumerations are translated by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cudnn.h"
#include "frontend/graph.h"

namespace hipdnn_cuda {

/// Why cuDNN's backend API cannot express the graph; nothing where it can, which is not yet a promise that an engine takes it. Opens no library.
std::optional<std::string> why_not_expressible(const hipdnn_port::Graph& graph);

/// A graph in cuDNN's terms. Descriptors refer to one another, so all of them live as long as this.
struct CudnnGraph {
  std::vector<CudnnDescriptor> parts;
  CudnnDescriptor graph;
  /// Tensors with a pointer, in the order of the hipDNN graph.
  std::vector<std::int64_t> uids;
  /// Baked scalars: their bytes lie here for as long as plans read them.
  std::vector<std::pair<std::int64_t, std::vector<std::byte>>> scalars;
  /// What pointwise operations read from outside, and what the graph writes: positions among `uids`, and bytes.
  std::vector<std::pair<std::size_t, std::size_t>> epilogue{};
  std::vector<std::pair<std::size_t, std::size_t>> results{};
};

/// Throws std::runtime_error with cuDNN's message. Requires an expressible graph.
CudnnGraph translate(const hipdnn_port::Graph& graph, cudnnHandle_t handle);

}  // namespace hipdnn_cuda
