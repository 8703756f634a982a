#include "onednn_epilogue.h"

#include <algorithm>
#include <array>

#include "onednn_memory.h"
#include "onednn_pointwise.h"

namespace hipdnn_port::onednn {

namespace {

constexpr auto kOut = HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT;
constexpr std::size_t kMaxPostOperations = 32;

std::string name_of(const Graph& graph, int node) {
  const std::string& name = graph.nodes[static_cast<std::size_t>(node)].name;
  return name.empty() ? "node " + std::to_string(node) : "node " + name;
}

/// Reads a graph's nodes along the running value; `failure` is set once and ends the reading.
class ChainReader {
 public:
  ChainReader(const Graph& graph, int anchor, int value) : graph_(graph), anchor_(anchor), value_(value) {}

  std::variant<Epilogue, std::string> read() {
    std::size_t used = 1;
    while (failure_.empty()) {
      const std::vector<int> readers = graph_.consumers(value_);
      if (readers.empty()) break;
      if (!tensor(value_).is_virtual) {
        return "tensor " + describe(tensor(value_)) + " is stored and also read by " + name_of(graph_, readers[0]) +
               "; oneDNN stores the last result of a chain only";
      }
      used += readers.size() == 1 ? take_node(readers[0]) : take_product(readers);
    }
    if (!failure_.empty()) return failure_;
    if (used != graph_.nodes.size()) return unused_nodes(used);
    if (std::any_of(steps_.begin(), steps_.end(), [](const EpilogueStep& s) { return !s.is_binary() && s.algorithm == kErf; })) {
      return std::string("an ERF node is not part of a written-out gelu; oneDNN has no error function by itself");
    }
    if (steps_.size() > kMaxPostOperations) return std::string("the chain has more steps than the 32 post-operations oneDNN allows");
    return Epilogue{steps_, value_};
  }

 private:
  const Tensor& tensor(int t) const { return graph_.tensor(t); }
  const Node& node(int n) const { return graph_.nodes[static_cast<std::size_t>(n)]; }
  bool is_pointwise(int n) const { return node(n).type == HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR; }

  std::string unused_nodes(std::size_t used) const {
    return "only " + std::to_string(used) + " of the graph's " + std::to_string(graph_.nodes.size()) + " nodes form a chain from " +
           name_of(graph_, anchor_) + "; the others would need an engine of their own";
  }

  std::size_t take_node(int n) {
    if (!is_pointwise(n)) {
      failure_ = name_of(graph_, n) + " reads the result of " + name_of(graph_, anchor_) + " and is not pointwise";
      return 0;
    }
    if (!apply(n, value_, steps_)) return 0;
    value_ = node(n).tensor(kOut);
    return 1;
  }

  /// Appends what node `n` does to tensor `value`.
  bool apply(int n, int value, Steps& steps) {
    std::variant<Steps, std::string> found = node_steps(graph_, node(n), value);
    if (const std::string* reason = std::get_if<std::string>(&found)) {
      failure_ = *reason;
      return false;
    }
    for (const EpilogueStep& step : std::get<Steps>(found)) {
      if (step.is_binary() && !check_operand(n, step.operand)) return false;
      append_step(steps, step);
    }
    return check_result(n, value);
  }

  bool check_operand(int n, int operand) {
    if (graph_.producer(operand) >= 0) {
      failure_ = name_of(graph_, n) + " reads " + describe(tensor(operand)) + ", which another node of the graph computes";
    } else if (const auto reason = refuses_tensor(broadcast_view(tensor(operand), tensor(value_).dims.size()))) {
      failure_ = *reason;
    } else if (!broadcasts(tensor(operand).dims, tensor(value_).dims)) {
      failure_ = name_of(graph_, n) + ": " + describe(tensor(operand)) + " does not broadcast to " + describe(tensor(value_));
    }
    return failure_.empty();
  }

  bool check_result(int n, int value) {
    const Tensor& result = tensor(node(n).tensor(kOut));
    if (result.dims != tensor(value).dims) {
      failure_ = name_of(graph_, n) + " turns " + describe(tensor(value)) + " into " + describe(result) + "; an epilogue keeps the dimensions";
    } else if (const auto reason = refuses_tensor(result)) {
      failure_ = *reason;
    }
    return failure_.empty();
  }

  static bool broadcasts(const Dims& from, const Dims& to) {
    if (from.size() > to.size()) return false;
    const std::size_t missing = to.size() - from.size();
    for (std::size_t d = 0; d < from.size(); ++d) {
      if (from[d] != 1 && from[d] != to[missing + d]) return false;
    }
    return true;
  }

  /// A node that multiplies two tensors which are both computed from the running value.
  bool joins(int n, int tensor_index) const {
    const Node& candidate = node(n);
    if (!is_pointwise(n) || !candidate.has_tensor(kIn1)) return false;
    if (candidate.integer_or(HIPDNN_ATTR_POINTWISE_MODE, 0) != HIPDNN_POINTWISE_MUL) return false;
    const int other = candidate.tensor(candidate.tensor(kIn0) == tensor_index ? kIn1 : kIn0);
    return other != tensor_index && !tensor(other).value && (other == value_ || graph_.producer(other) >= 0);
  }

  struct Branch {
    Steps steps;
    int join = -1;
    std::size_t nodes = 0;
  };

  /// Follows one reader of the running value up to the product in which the branches meet.
  Branch follow(int n) {
    Branch branch;
    int value = value_;
    while (failure_.empty()) {
      if (joins(n, value)) {
        branch.join = n;
        return branch;
      }
      if (!is_pointwise(n) || !apply(n, value, branch.steps)) break;
      ++branch.nodes;
      value = node(n).tensor(kOut);
      const std::vector<int> readers = graph_.consumers(value);
      if (readers.size() != 1 || !tensor(value).is_virtual) break;
      n = readers[0];
    }
    return branch;
  }

  std::size_t take_product(const std::vector<int>& readers) {
    const std::string refusal = "tensor " + describe(tensor(value_)) + " is read by " + std::to_string(readers.size()) +
                                " nodes that are not a written-out hard swish, swish, gelu or mish";
    if (readers.size() != 2) {
      failure_ = refusal;
      return 0;
    }
    const Branch left = follow(readers[0]);
    const Branch right = follow(readers[1]);
    const Steps product = left.join >= 0 && left.join == right.join ? product_of(left.steps, right.steps) : Steps{};
    if (product.empty()) {
      failure_ = refusal;
      return 0;
    }
    for (const EpilogueStep& step : product) append_step(steps_, step);
    value_ = node(left.join).tensor(kOut);
    return left.nodes + right.nodes + 1;
  }

  const Graph& graph_;
  int anchor_;
  int value_;
  Steps steps_;
  std::string failure_;
};

struct AlgorithmName {
  dnnl::algorithm algorithm;
  const char* name;
};

constexpr std::array kAlgorithmNames{
    AlgorithmName{dnnl::algorithm::eltwise_relu, "relu"},
    AlgorithmName{dnnl::algorithm::eltwise_clip, "clip"},
    AlgorithmName{dnnl::algorithm::eltwise_linear, "linear"},
    AlgorithmName{dnnl::algorithm::eltwise_tanh, "tanh"},
    AlgorithmName{dnnl::algorithm::eltwise_logistic, "sigmoid"},
    AlgorithmName{dnnl::algorithm::eltwise_gelu_erf, "gelu"},
    AlgorithmName{dnnl::algorithm::eltwise_gelu_tanh, "gelu_tanh"},
    AlgorithmName{dnnl::algorithm::eltwise_swish, "swish"},
    AlgorithmName{dnnl::algorithm::eltwise_hardswish, "hardswish"},
    AlgorithmName{dnnl::algorithm::eltwise_mish, "mish"},
    AlgorithmName{dnnl::algorithm::eltwise_elu, "elu"},
    AlgorithmName{dnnl::algorithm::eltwise_soft_relu, "softplus"},
    AlgorithmName{dnnl::algorithm::eltwise_abs, "abs"},
    AlgorithmName{dnnl::algorithm::eltwise_sqrt, "sqrt"},
    AlgorithmName{dnnl::algorithm::eltwise_exp, "exp"},
    AlgorithmName{dnnl::algorithm::eltwise_log, "log"},
    AlgorithmName{dnnl::algorithm::eltwise_pow, "pow"},
    AlgorithmName{dnnl::algorithm::eltwise_square, "square"},
    AlgorithmName{dnnl::algorithm::binary_add, "add"},
    AlgorithmName{dnnl::algorithm::binary_sub, "sub"},
    AlgorithmName{dnnl::algorithm::binary_mul, "mul"},
    AlgorithmName{dnnl::algorithm::binary_div, "div"},
    AlgorithmName{dnnl::algorithm::binary_min, "min"},
    AlgorithmName{dnnl::algorithm::binary_max, "max"},
};

}  // namespace

std::variant<Epilogue, std::string> read_epilogue(const Graph& graph, int anchor, int anchor_result) {
  return ChainReader(graph, anchor, anchor_result).read();
}

std::string words(const std::vector<EpilogueStep>& steps) {
  std::string text;
  for (const EpilogueStep& step : steps) {
    const auto* known = std::find_if(kAlgorithmNames.begin(), kAlgorithmNames.end(),
                                     [&](const AlgorithmName& entry) { return entry.algorithm == step.algorithm; });
    text += std::string(" + ") + (known == kAlgorithmNames.end() ? "step" : known->name);
  }
  return text;
}

}  // namespace hipdnn_port::onednn
