// Matrix products of any batch rank, with their epilogues.
#include <algorithm>
#include <map>
#include <stdexcept>

#include "onednn_builders.h"
#include "onednn_fusion.h"

namespace hipdnn_host::onednn {

namespace {

using dnnl::memory;

constexpr auto kA = HIPDNN_ATTR_OPERATION_MATMUL_ADESC;
constexpr auto kB = HIPDNN_ATTR_OPERATION_MATMUL_BDESC;
constexpr auto kC = HIPDNN_ATTR_OPERATION_MATMUL_CDESC;

const Tensor& at(const Graph& graph, int t) { return graph.tensors[static_cast<std::size_t>(t)]; }

/// A product with all its tensors brought to one rank, and that rank made as small as their strides allow. Dimensions are
/// batch..., rows, columns; `others` are the epilogue's operands by index in Graph::tensors.
class Product {
 public:
  Product(const Graph& graph, int a, int b, int c, const std::vector<EpilogueStep>& steps) {
    rank_ = std::max({at(graph, a).dims.size(), at(graph, b).dims.size(), at(graph, c).dims.size()});
    a_ = broadcast_view(at(graph, a), rank_);
    b_ = broadcast_view(at(graph, b), rank_);
    c_ = broadcast_view(at(graph, c), rank_);
    for (const EpilogueStep& step : steps) {
      if (step.is_binary()) others_.emplace(step.operand, broadcast_view(at(graph, step.operand), rank_));
    }
    merge_batch();
    merge_rows();
  }

  memory::desc a() const { return desc(a_); }
  memory::desc b() const { return desc(b_); }
  memory::desc c() const { return desc(c_); }
  memory::desc other(int t) const { return desc(others_.at(t)); }
  std::size_t rank() const { return rank_; }

 private:
  static memory::desc desc(const Tensor& t) { return memory_of(t, true); }

  bool is_whole(const Tensor& t, std::size_t d) const { return t.dims[d] == c_.dims[d]; }

  /// Can dimensions d and d + 1 of `t` be walked as one?
  bool joins(const Tensor& t, std::size_t d) const {
    if (c_.dims[d] == 1 || c_.dims[d + 1] == 1) return true;
    if (t.dims[d] == 1 && t.dims[d + 1] == 1) return true;
    return is_whole(t, d) && is_whole(t, d + 1) && t.strides[d] == t.strides[d + 1] * t.dims[d + 1];
  }

  static void join(Tensor& t, std::size_t d) {
    const auto at_d = static_cast<std::ptrdiff_t>(d);
    const std::int64_t stride = t.dims[d + 1] == 1 ? t.strides[d] : t.strides[d + 1];
    t.dims[d + 1] *= t.dims[d];
    t.strides[d + 1] = stride;
    t.dims.erase(t.dims.begin() + at_d);
    t.strides.erase(t.strides.begin() + at_d);
  }

  static void drop(Tensor& t, std::size_t d) {
    t.dims.erase(t.dims.begin() + static_cast<std::ptrdiff_t>(d));
    t.strides.erase(t.strides.begin() + static_cast<std::ptrdiff_t>(d));
  }

  bool others_join(std::size_t d) const {
    return std::all_of(others_.begin(), others_.end(), [&](const auto& entry) { return joins(entry.second, d); });
  }

  void join_results(std::size_t d) {
    join(a_, d);
    for (auto& [index, tensor] : others_) join(tensor, d);
  }

  void merge_batch() {
    for (std::size_t d = rank_ < 4 ? 0 : rank_ - 3; d-- > 0;) {
      if (!joins(a_, d) || !joins(b_, d) || !joins(c_, d) || !others_join(d)) continue;
      join_results(d);
      join(b_, d);
      join(c_, d);
      --rank_;
    }
  }

  /// Rows of different batches under each other make one taller matrix where the right operand is the same for all of them.
  void merge_rows() {
    while (rank_ > 2) {
      const std::size_t d = rank_ - 3;
      if (b_.dims[d] != 1 || !joins(a_, d) || !joins(c_, d) || !others_join(d)) return;
      join_results(d);
      drop(b_, d);
      join(c_, d);
      --rank_;
    }
  }

  std::size_t rank_ = 2;
  Tensor a_, b_, c_;
  std::map<int, Tensor> others_;
};

struct Choice {
  memory::desc a, c;
  PostOperations post;
  dnnl::primitive_desc_base desc;
  std::string implementation;
};

struct Problem {
  const Product& product;
  BiasAndSteps epilogue;
  memory::desc bias;  ///< empty where there is none
};

Choice try_layouts(const Problem& p, const memory::desc& a, const memory::desc& b, const memory::desc& c) {
  Choice choice{a, c, {}, {}, {}};
  const OperandView view = [&p](int t) { return p.product.other(t); };
  choice.post = post_operations(p.epilogue.steps, view, c);
  dnnl::primitive_attr attributes = PlanBuilder::attributes();
  attributes.set_post_ops(choice.post.operations);
  choice.desc = dnnl::matmul::primitive_desc(cpu_engine(), a, b, p.bias, c, attributes, true);
  if (choice.desc.get(true)) choice.implementation = choice.desc.impl_info_str();
  return choice;
}

memory::desc plain(const memory::desc& desc) {
  return memory_of(desc.get_dims(), desc.get_data_type(), plain_strides(desc.get_dims()));
}

/// The caller's layouts where oneDNN has generated code for them, else plain ones that the plan copies from and to.
Choice choose(const Problem& p, const memory::desc& b) {
  Choice choice = try_layouts(p, p.product.a(), b, p.product.c());
  if (!choice.implementation.empty() && !is_reference(choice.implementation)) return choice;
  const memory::desc b_plain = b.get_format_kind() == memory::format_kind::any ? b : plain(b);
  Choice copied = try_layouts(p, plain(p.product.a()), b_plain, plain(p.product.c()));
  const bool better = !copied.implementation.empty() && (choice.implementation.empty() || !is_reference(copied.implementation));
  if (better) choice = std::move(copied);
  if (choice.implementation.empty()) throw std::runtime_error("oneDNN has no matrix product for these operands");
  return choice;
}

memory::desc bias_desc(std::size_t rank, std::int64_t columns) {
  Dims dims(rank, 1);
  dims.back() = columns;
  return memory_of(dims, memory::data_type::f32, plain_strides(dims));
}

}  // namespace

std::optional<std::string> matmul_refuses(const Graph& graph) {
  const Node& node = graph.nodes[0];
  for (const auto name : {kA, kB, kC}) {
    const Tensor& tensor = at(graph, node.tensor(name));
    if (tensor.dims.size() < 2) return "matmul " + node.name + ": " + describe(tensor) + " has fewer than two dimensions";
    if (const auto reason = refuses_tensor(broadcast_view(tensor, tensor.dims.size()))) return reason;
  }
  const auto epilogue = read_epilogue(graph, 0, node.tensor(kC));
  if (const std::string* reason = std::get_if<std::string>(&epilogue)) return *reason;
  return std::nullopt;
}

std::unique_ptr<Plan> build_matmul(const Graph& graph, const PlanOptions& options) {
  PlanBuilder builder(graph, options);
  const Node& node = graph.nodes[0];
  const int a = node.tensor(kA);
  const int b = node.tensor(kB);
  const Epilogue epilogue = std::get<Epilogue>(read_epilogue(graph, 0, node.tensor(kC)));
  const Tensor& result = at(graph, epilogue.result);
  const Product product(graph, a, b, epilogue.result, epilogue.steps);
  Problem problem{product, split_bias(graph, result, result.dims.size() - 1, epilogue.steps), {}};
  if (problem.epilogue.bias) problem.bias = bias_desc(product.rank(), result.dims.back());
  const memory::desc b_stored = product.b();
  const bool packs = options.constants.contains(at(graph, b).uid);
  const memory::desc b_any(b_stored.get_dims(), b_stored.get_data_type(), memory::format_tag::any);
  const Choice choice = choose(problem, packs ? b_any : b_stored);

  std::vector<std::pair<int, int>> arguments{
      {DNNL_ARG_SRC, builder.loaded(a, product.a(), choice.a)},
      {DNNL_ARG_WEIGHTS, builder.loaded(b, b_stored, choice.desc.query_md(dnnl::query::weights_md))},
  };
  if (problem.epilogue.bias) arguments.emplace_back(DNNL_ARG_BIAS, builder.operand(*problem.epilogue.bias, problem.bias));
  load_operands(builder, choice.post, arguments);
  const int to = builder.result(epilogue.result, product.c(), choice.c);
  arguments.emplace_back(DNNL_ARG_DST, to);
  builder.run(choice.desc, std::move(arguments));
  builder.store(epilogue.result, product.c(), to);
  return builder.finish(choice.implementation + (problem.epilogue.bias ? " + bias" : "") + words(problem.epilogue.steps));
}

}  // namespace hipdnn_host::onednn
