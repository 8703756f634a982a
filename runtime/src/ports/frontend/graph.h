// The operation graph as the host library's engines see it: validated, immutable, free of descriptor handles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hipdnn_backend.h"

namespace hipdnn_port {

/// Bytes of one element; throws for sub-byte types, which no host engine takes.
std::size_t element_bytes(hipdnnDataType_t type);

/// One tensor of a graph. Dims are logical (n c h w); layout is the strides, in elements.
struct Tensor {
  std::int64_t uid = 0;
  std::string name;
  hipdnnDataType_t dtype = HIPDNN_DATA_FLOAT;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;
  bool is_virtual = false;
  /// Its pointer is to one number that is known when the plan runs.
  bool is_runtime_value = false;
  /// Every pointer bound to this tensor is a multiple of this; checked before `Plan::execute`.
  std::int64_t byte_alignment = 16;
  /// Raw little-endian bytes of a compile-time scalar; such a tensor has no pointer in the variant pack.
  std::optional<std::vector<std::byte>> value;

  std::int64_t rank() const { return static_cast<std::int64_t>(dims.size()); }
  std::int64_t element_count() const;
  bool has_pointer() const { return !is_virtual && !value; }
  /// The baked scalar as a double. Requires value.
  double scalar() const;
};

/// An attribute that is not a tensor: INT64/INT32/enum/BOOLEAN arrive as integers, FLOAT/DOUBLE as doubles, CHAR as a string.
using AttributeValue = std::variant<std::vector<std::int64_t>, std::vector<double>, std::string>;

/// The bound c of attention whose scores become c * tanh(score / c): this library's own attribute, which hipDNN has not.
constexpr auto sdpa_soft_cap = static_cast<hipdnnBackendAttributeName_t>(HIPDNN_ATTR_SDPA_FWD_SOFT_CAP_MLIR_EXT);

/// One operation. Tensors are indices into Graph::tensors.
struct Node {
  hipdnnBackendDescriptorType_t type;
  std::string name;
  std::map<hipdnnBackendAttributeName_t, std::vector<int>> tensors;
  std::map<hipdnnBackendAttributeName_t, AttributeValue> attributes;

  bool has_tensor(hipdnnBackendAttributeName_t name) const { return tensors.contains(name); }
  /// Index of the single tensor under `name`; throws std::out_of_range where absent.
  int tensor(hipdnnBackendAttributeName_t name) const { return tensors.at(name).at(0); }
  bool has(hipdnnBackendAttributeName_t name) const { return attributes.contains(name); }
  const std::vector<std::int64_t>& ints(hipdnnBackendAttributeName_t name) const;
  std::int64_t integer(hipdnnBackendAttributeName_t name) const { return ints(name).at(0); }
  std::int64_t integer_or(hipdnnBackendAttributeName_t name, std::int64_t otherwise) const;
  double real_or(hipdnnBackendAttributeName_t name, double otherwise) const;
};

/// Nodes in topological order; tensors in order of first appearance. Node inputs and outputs are told apart by
/// `is_output_attribute`, and producer/consumers are derived, never stored.
struct Graph {
  std::string name;
  hipdnnDataType_t compute_type = HIPDNN_DATA_FLOAT;
  hipdnnDataType_t intermediate_type = HIPDNN_DATA_FLOAT;
  hipdnnDataType_t io_type = HIPDNN_DATA_FLOAT;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;

  const Tensor& tensor(int index) const { return tensors[static_cast<std::size_t>(index)]; }
  /// What the first node has under an attribute's name.
  const Tensor& operand(hipdnnBackendAttributeName_t name) const { return tensor(nodes[0].tensor(name)); }
  /// Index of the node that writes tensor `t`, or -1 for a graph input.
  int producer(int t) const;
  /// Indices of the nodes that read tensor `t`, in node order.
  std::vector<int> consumers(int t) const;
};

/// Strides of a dense tensor whose dims lie in memory in the order of `order`, strides of as many dims.
std::vector<std::int64_t> packed_strides(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& order);

/// "[1, 64, 56, 56] float uid 3 'conv1'": how messages name a tensor.
std::string describe(const Tensor& tensor);

/// "graph 'name'", without a name "a graph of 2 operations": how messages name a graph.
std::string describe(const Graph& graph);

/// True where the ABI names an operation's result with this attribute (Y, C, O, OUT_0, DX of backward data, ...).
bool is_output_attribute(hipdnnBackendDescriptorType_t type, hipdnnBackendAttributeName_t name);

}  // namespace hipdnn_port
