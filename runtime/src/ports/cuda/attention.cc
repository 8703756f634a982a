#include "attention.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "frontend/names.h"
#include "frontend/status.h"
#include "graph_writer.h"

namespace hipdnn_cuda {
namespace {

using hipdnn_port::Graph;
using hipdnn_port::Node;
using hipdnn_port::Tensor;

/// Writes the nodes. Results are numbers of tensors.
class Writer {
 public:
  explicit Writer(const Graph& graph) : node_(graph.nodes.front()), made_(graph) {}

  Graph run() {
    const int query = node_.tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_QDESC);
    const int key = node_.tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_KDESC);
    const int value = node_.tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_VDESC);
    const int output = node_.tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_ODESC);
    transpose(key);
    const Tensor& q = made_.tensor(query);
    const hipdnnDataType_t narrow = q.dtype;
    full_ = {q.dims[0], q.dims[1], q.dims[2], made_.tensor(key).dims[3]};
    rows_ = {full_[0], full_[1], full_[2], 1};
    int scores = matmul(query, key, made_.intermediate(full_));
    scores = pointwise(HIPDNN_POINTWISE_MUL, scores, scale());
    if (node_.has_tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_ATTN_MASK_EXT)) {
      scores = pointwise(HIPDNN_POINTWISE_ADD, scores, node_.tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_ATTN_MASK_EXT));
    }
    if (is_set(HIPDNN_ATTR_SDPA_FWD_CAUSAL_MASK_EXT)) scores = causal(scores);
    const int greatest = reduction(HIPDNN_REDUCE_TENSOR_MAX, scores);
    const int raised = pointwise(HIPDNN_POINTWISE_EXP, pointwise(HIPDNN_POINTWISE_SUB, scores, greatest));
    const int sum = reduction(HIPDNN_REDUCE_TENSOR_ADD, raised);
    // The engines look for the whole softmax, its logarithm of the sum included, whether anything reads that or not.
    made_.pointwise(HIPDNN_POINTWISE_ADD, {greatest, pointwise_of_rows(HIPDNN_POINTWISE_LOG, sum)}, made_.intermediate(rows_));
    const int weights = made_.intermediate(full_, narrow);
    made_.pointwise(HIPDNN_POINTWISE_DIV, {raised, sum}, weights);
    matmul(weights, value, output);
    return made_.take();
  }

 private:
  bool is_set(hipdnnBackendAttributeName_t name) const { return node_.integer_or(name, 0) != 0; }

  int scale() {
    if (node_.has_tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC)) return node_.tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC);
    return made_.number(static_cast<float>(node_.real_or(HIPDNN_ATTR_SDPA_FWD_ATTN_SCALE_VALUE_EXT, 1)), full_.size());
  }

  void transpose(int index) {
    Tensor& tensor = made_.tensor(index);
    std::swap(tensor.dims[2], tensor.dims[3]);
    std::swap(tensor.strides[2], tensor.strides[3]);
  }

  int matmul(int a, int b, int c) {
    Node node{HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "", {}, {}};
    node.tensors = {{HIPDNN_ATTR_OPERATION_MATMUL_ADESC, {a}}, {HIPDNN_ATTR_OPERATION_MATMUL_BDESC, {b}}, {HIPDNN_ATTR_OPERATION_MATMUL_CDESC, {c}}};
    node.attributes = {{HIPDNN_ATTR_MATMUL_COMP_TYPE, Dims{HIPDNN_DATA_FLOAT}}};
    made_.append(std::move(node));
    return c;
  }

  /// The position of each score along a dim.
  int positions(int scores, std::int64_t axis) {
    const int made = made_.pointwise(HIPDNN_POINTWISE_GEN_INDEX, {scores}, made_.intermediate(full_, HIPDNN_DATA_INT32), HIPDNN_DATA_INT32);
    made_.last_node().attributes[HIPDNN_ATTR_POINTWISE_AXIS] = Dims{axis};
    return made;
  }

  int pointwise(hipdnnPointwiseMode_t mode, int a) { return made_.pointwise(mode, {a}, made_.intermediate(full_)); }
  int pointwise(hipdnnPointwiseMode_t mode, int a, int b) { return made_.pointwise(mode, {a, b}, made_.intermediate(full_)); }
  int pointwise_of_rows(hipdnnPointwiseMode_t mode, int a) { return made_.pointwise(mode, {a}, made_.intermediate(rows_)); }

  int reduction(hipdnnReduceTensorOp_t mode, int x) {
    const int y = made_.intermediate(rows_);
    Node node{HIPDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "", {}, {}};
    node.tensors = {{HIPDNN_ATTR_OPERATION_REDUCTION_XDESC, {x}}, {HIPDNN_ATTR_OPERATION_REDUCTION_YDESC, {y}}};
    node.attributes = {{HIPDNN_ATTR_REDUCTION_OPERATOR, Dims{mode}}, {HIPDNN_ATTR_REDUCTION_COMP_TYPE, Dims{HIPDNN_DATA_FLOAT}}};
    made_.append(std::move(node));
    return y;
  }

  /// A query attends the keys up to its own position.
  int causal(int scores) {
    const int rows = positions(scores, 2), columns = positions(scores, 3);
    const int attends = made_.pointwise(HIPDNN_POINTWISE_CMP_GE, {rows, columns}, made_.intermediate(full_, HIPDNN_DATA_BOOLEAN), HIPDNN_DATA_BOOLEAN);
    const int nothing = made_.number(std::numeric_limits<float>::lowest(), full_.size());
    return made_.pointwise(HIPDNN_POINTWISE_BINARY_SELECT, {scores, nothing, attends}, made_.intermediate(full_));
  }

  const Node& node_;
  GraphWriter made_;
  Dims full_, rows_;
};

}  // namespace

bool is_attention(const Graph& graph) {
  return graph.nodes.size() == 1 && graph.nodes.front().type == HIPDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR;
}

std::optional<std::string> why_not_written_out(const Graph& graph) {
  const Node& node = graph.nodes.front();
  constexpr std::pair<hipdnnBackendAttributeName_t, const char*> refused[] = {
      {HIPDNN_ATTR_SDPA_FWD_GENERATE_STATS_EXT, "statistics"},
      {HIPDNN_ATTR_SDPA_FWD_ALIBI_MASK_EXT, "an ALiBi mask"},
      {HIPDNN_ATTR_SDPA_FWD_PADDING_MASK_EXT, "a padding mask"},
      {HIPDNN_ATTR_SDPA_FWD_CAUSAL_MASK_BOTTOM_RIGHT_EXT, "a causal mask from the bottom right"},
  };
  for (const auto& [name, what] : refused) {
    if (node.integer_or(name, 0) != 0) return std::string("attention with ") + what + " is not translated";
  }
  if (node.real_or(HIPDNN_ATTR_SDPA_FWD_DROPOUT_PROBABILITY_EXT, 0) != 0) return "attention with dropout is not translated";
  for (const auto name : {HIPDNN_ATTR_SDPA_FWD_LEFT_BOUND_EXT, HIPDNN_ATTR_SDPA_FWD_RIGHT_BOUND_EXT}) {
    if (node.has(name)) return "attention within a band is not translated";
  }
  constexpr hipdnnBackendAttributeName_t known[] = {
      HIPDNN_ATTR_OPERATION_SDPA_FWD_QDESC, HIPDNN_ATTR_OPERATION_SDPA_FWD_KDESC, HIPDNN_ATTR_OPERATION_SDPA_FWD_VDESC,
      HIPDNN_ATTR_OPERATION_SDPA_FWD_ODESC, HIPDNN_ATTR_OPERATION_SDPA_FWD_ATTN_MASK_EXT, HIPDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC};
  for (const auto& [name, tensors] : node.tensors) {
    if (std::ranges::find(known, name) == std::end(known)) return "attention with " + hipdnn_port::attribute_name(name) + " is not translated";
  }
  if (node.has_tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_ATTN_MASK_EXT) &&
      graph.tensor(node.tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_ATTN_MASK_EXT)).dtype == HIPDNN_DATA_BOOLEAN) {
    return "attention with a mask of booleans is not translated";
  }
  return std::nullopt;
}

Graph written_out(const Graph& graph) { return Writer(graph).run(); }

}  // namespace hipdnn_cuda
