// A graph of ONNX Runtime as an ONNX model, the form in which it reaches the compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph_view.h"
#include "ort.h"

namespace hipdnn_ep {

/// Float initializers with more bytes than this stay outside the model's text: the compiler never looks at their values before it packs them.
inline constexpr std::size_t kInlineInitializerBytes = 1024;
/// Where the weights region and each weight in it start: a multiple of this many bytes.
inline constexpr std::size_t kWeightAlignment = 64;

/// A model with its large weights beside it. The weights are ONNX Runtime's memory, alive as long as the graph.
struct EncodedModel {
  struct Weight {
    /// Bytes from the start of the weights region.
    std::uint64_t offset;
    std::span<const std::byte> data;
  };

  /// A serialized onnx.ModelProto; large initializers refer to the location "weights".
  std::string proto;
  std::vector<Weight> weights;
  std::uint64_t weight_bytes = 0;
  /// A name for each node of the graph, in its order, unique and never empty.
  std::vector<std::string> node_names;
};

/// What the model reads and computes; values of the graph.
struct Interface {
  std::vector<const OrtValueInfo*> inputs;
  std::vector<const OrtValueInfo*> outputs;
};

/// The inputs that a caller must give and the outputs of a whole graph.
Interface interface_of(const Ort& ort, const OrtGraph* graph);

/// Whether an encoded model comes with its large weights. ONNX Runtime may copy a weight to show it, so they are asked for only if needed.
enum class Weights { described, included };

/// Encode a graph, with the dims of `known` in place of what ONNX Runtime tells. The text is the same for both kinds of `weights`. Throws OrtFailure where ONNX Runtime refuses to show a part of it.
EncodedModel encode_model(const Ort& ort, const OrtGraph* graph, const Interface& interface, Weights weights, const KnownDims& known = {});

}  // namespace hipdnn_ep
