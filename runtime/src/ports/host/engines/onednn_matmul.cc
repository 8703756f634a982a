// Matrix products of any batch rank, with their epilogues.
#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "onednn_builders.h"
#include "onednn_fusion.h"

namespace hipdnn_port::onednn {

namespace {

using dnnl::memory;

constexpr auto kA = HIPDNN_ATTR_OPERATION_MATMUL_ADESC;
constexpr auto kB = HIPDNN_ATTR_OPERATION_MATMUL_BDESC;
constexpr auto kC = HIPDNN_ATTR_OPERATION_MATMUL_CDESC;

/// A product with all its tensors brought to one rank, and that rank made as small as their strides allow. Dimensions are
/// batch..., rows, columns; `others` are the epilogue's operands by index in Graph::tensors.
class Product {
 public:
  Product(const Graph& graph, int a, int b, int c, const std::vector<EpilogueStep>& steps) {
    rank_ = std::max({graph.tensor(a).dims.size(), graph.tensor(b).dims.size(), graph.tensor(c).dims.size()});
    a_ = broadcast_view(graph.tensor(a), rank_);
    b_ = broadcast_view(graph.tensor(b), rank_);
    c_ = broadcast_view(graph.tensor(c), rank_);
    for (const EpilogueStep& step : steps) {
      if (step.is_binary()) others_.emplace(step.operand, broadcast_view(graph.tensor(step.operand), rank_));
    }
    merge_batch();
    merge_rows();
  }

  memory::desc a() const { return desc(a_); }
  memory::desc b() const { return desc(b_); }
  memory::desc c() const { return desc(c_); }
  memory::desc other(int t) const { return desc(others_.at(t)); }
  std::size_t rank() const { return rank_; }

  /// The same product under one more batch dimension, of one element.
  Product with_outer_batch() const {
    Product outer = *this;
    ++outer.rank_;
    for (Tensor* t : {&outer.a_, &outer.b_, &outer.c_}) *t = broadcast_view(*t, outer.rank_);
    for (auto& [index, tensor] : outer.others_) tensor = broadcast_view(tensor, outer.rank_);
    return outer;
  }

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

/// Do dimensions lie in memory one within the other, the last one innermost?
bool is_in_order(const memory::desc& desc) {
  const Dims dims = desc.get_dims(), strides = desc.get_strides();
  std::int64_t inner = 0;
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    if (strides[d] < inner) return false;
    inner = strides[d];
  }
  return true;
}

FusedPrimitive try_layouts(const Product& product, const std::vector<EpilogueStep>& steps, const memory::desc& a, const memory::desc& b,
                           const memory::desc& bias, const memory::desc& c) {
  FusedPrimitive chosen{a, c, {}, {}, {}, {}, {}};
  chosen.post = post_operations(
      steps, [&](int t) { return product.other(t); }, c);
  dnnl::primitive_attr attributes = PlanBuilder::attributes();
  attributes.set_post_ops(chosen.post.operations);
  chosen.desc = dnnl::matmul::primitive_desc(cpu_engine(), a, b, bias, c, attributes, true);
  if (!chosen.desc.get(true)) return chosen;
  const std::string implementation = chosen.desc.impl_info_str();
  // Its code finds operands that broadcast by where a result lies, as if results were in C order, that of gemm as if they had no gaps, too.
  const bool broadcasts = std::ranges::any_of(chosen.post.operands, [&](const auto& operand) { return operand.wanted.get_dims() != c.get_dims(); });
  const bool is_gemm = implementation.find("gemm") != std::string::npos;
  if (!broadcasts || (is_in_order(c) && !(is_gemm && has_gaps(c)))) chosen.implementation = implementation;
  return chosen;
}

memory::desc plain(const memory::desc& desc) {
  return memory_of(desc.get_dims(), desc.get_data_type(), plain_strides(desc.get_dims()));
}

memory::desc bias_desc(std::size_t rank, std::int64_t columns) {
  Dims dims(rank, 1);
  dims.back() = columns;
  return memory_of(dims, memory::data_type::f32, plain_strides(dims));
}

/// A product in one form with the best oneDNN has for it.
struct ProductProblem {
  FusedPrimitive chosen;
  memory::desc a, b, bias, c;  ///< as stored; `bias` is empty where there is none
  OperandView view;
};

/// The caller's layouts where oneDNN has generated code for them, else plain ones that the plan copies from and to.
ProductProblem solve_as_is(const Product& product, const std::vector<EpilogueStep>& steps, bool packs, bool has_bias) {
  const memory::desc b = product.b();
  const memory::desc b_any(b.get_dims(), b.get_data_type(), memory::format_tag::any);
  const memory::desc bias = has_bias ? bias_desc(product.rank(), b.get_dims().back()) : memory::desc();
  FusedPrimitive chosen = fuse_longest(steps, [&](const std::vector<EpilogueStep>& fused) {
    FusedPrimitive stored = try_layouts(product, fused, product.a(), packs ? b_any : b, bias, product.c());
    if (!stored.implementation.empty() && !is_reference(stored.implementation)) return stored;
    return better(stored, try_layouts(product, fused, plain(product.a()), packs ? b_any : plain(b), bias, plain(product.c())));
  });
  return {std::move(chosen), product.a(), b, bias, product.c(), [product](int t) { return product.other(t); }};
}

ProductProblem solve(const Product& tight, const std::vector<EpilogueStep>& steps, bool packs, bool has_bias) {
  ProductProblem best = solve_as_is(tight, steps, packs, has_bias);
  // Three dimensions whose rows lie between those of other batches (the heads of attention) are known to oneDNN's better kernels
  // only as the inner three of four.
  if (!is_direct(best.chosen.implementation)) {
    ProductProblem outer = solve_as_is(tight.with_outer_batch(), steps, packs, has_bias);
    if (is_direct(outer.chosen.implementation)) best = std::move(outer);
  }
  return best;
}

/// Rows of a matrix as pixels and its columns as channels, channels-last.
memory::desc image_of(const memory::desc& matrix) {
  const Dims dims{1, matrix.get_dims()[1], matrix.get_dims()[0], 1};
  return memory_of(dims, matrix.get_data_type(), channels_last_strides(dims));
}

bool is_plain(const memory::desc& desc) { return same_layout(desc.get_dims(), desc.get_strides(), plain_strides(desc.get_dims())); }

/// oneDNN's kernel of AVX2 for convolutions of one tap.
constexpr std::string_view kOneTap = "jit_1x1:avx2";

/// The product as a convolution of one tap. Its weights are packed once, where oneDNN's gemm packs them in each run: that takes up to twice
/// as long for as few rows as the tokens of an image or a sentence. Nothing where it is no such product, or one row, which is as fast without
/// a copy of the weights, or there is no such kernel.
std::optional<ProductProblem> solve_as_convolution(const Product& product, const std::vector<EpilogueStep>& steps, bool has_bias) {
  const auto is_taken = [](const memory::desc& desc) { return desc.get_data_type() == memory::data_type::f32 && is_plain(desc); };
  const bool are_steps_taken = std::ranges::all_of(steps, [&](const EpilogueStep& step) { return !step.is_binary() || is_taken(product.other(step.operand)); });
  if (product.rank() != 2 || product.a().get_dims()[0] == 1 || !is_taken(product.a()) || !is_taken(product.c()) || !are_steps_taken) return std::nullopt;
  const memory::desc b = product.b();
  const Dims dims{b.get_dims()[1], b.get_dims()[0], 1, 1};
  ProductProblem problem{{}, image_of(product.a()), memory_of(dims, b.get_data_type(), {b.get_strides()[1], b.get_strides()[0], 1, 1}), {},
                         image_of(product.c()), [product](int t) { return image_of(product.other(t)); }};
  if (has_bias) problem.bias = memory_of({dims[0]}, memory::data_type::f32, {1});
  problem.chosen = {problem.a, problem.c, post_operations(steps, problem.view, problem.c), {}, std::string(kOneTap), steps, {}};
  dnnl::primitive_attr attributes = PlanBuilder::attributes();
  attributes.set_post_ops(problem.chosen.post.operations);
  const memory::desc any(dims, b.get_data_type(), memory::format_tag::any);
  dnnl::convolution_forward::primitive_desc desc(cpu_engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, problem.a, any,
                                                 problem.bias, problem.c, {1, 1}, {0, 0}, {0, 0}, attributes, true);
  if (!desc.get(true)) return std::nullopt;
  while (desc.impl_info_str() != kOneTap) {
    if (!desc.next_impl()) return std::nullopt;
  }
  problem.chosen.desc = desc;
  return problem;
}

/// Why oneDNN, asked, would run a part of the epilogue in generic loops: an operand that broadcasts over rows and columns, but not over
/// all batches, has no generated code.
std::optional<std::string> refuses_epilogue(const Graph& graph, const Node& node, const Epilogue& epilogue) {
  const Tensor& result = graph.tensor(epilogue.result);
  const auto [bias, steps] = split_bias(graph, result, result.dims.size() - 1, epilogue.steps);
  const auto batched = std::ranges::find_if(steps, [&](const EpilogueStep& step) {
    if (!step.is_binary()) return false;
    const Dims dims = broadcast_view(graph.tensor(step.operand), result.dims.size()).dims;
    return dims != result.dims && std::any_of(dims.begin(), dims.end() - 2, [](std::int64_t size) { return size > 1; });
  });
  if (batched == steps.end()) return std::nullopt;
  const ProductProblem best = solve(Product(graph, node.tensor(kA), node.tensor(kB), epilogue.result, epilogue.steps), steps, false, bias.has_value());
  if (!has_reference_rest(best.chosen, best.view)) return std::nullopt;
  return "matmul " + node.name + ": oneDNN has no generated code for an epilogue with " + describe(graph.tensor(batched->operand));
}

/// Is there a batch dimension along which the result only repeats itself?
bool repeats_batches(const Graph& graph, const Node& node) {
  const Tensor& c = graph.tensor(node.tensor(kC));
  const Tensor a = broadcast_view(graph.tensor(node.tensor(kA)), c.dims.size());
  const Tensor b = broadcast_view(graph.tensor(node.tensor(kB)), c.dims.size());
  for (std::size_t d = 0; d + 2 < c.dims.size(); ++d) {
    if (c.dims[d] > 1 && a.dims[d] == 1 && b.dims[d] == 1) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> matmul_refuses(const Graph& graph) {
  const Node& node = graph.nodes[0];
  for (const auto name : {kA, kB, kC}) {
    const Tensor& tensor = graph.tensor(node.tensor(name));
    if (tensor.dims.size() < 2) return "matmul " + node.name + ": " + describe(tensor) + " has fewer than two dimensions";
    if (const auto reason = refuses_tensor(broadcast_view(tensor, tensor.dims.size()))) return reason;
  }
  if (repeats_batches(graph, node)) return "matmul " + node.name + ": the result has more batches than both operands";
  const auto epilogue = read_epilogue(graph, 0, node.tensor(kC));
  if (const std::string* reason = std::get_if<std::string>(&epilogue)) return *reason;
  return refuses_epilogue(graph, node, std::get<Epilogue>(epilogue));
}

std::unique_ptr<Plan> build_matmul(const Graph& graph, const PlanOptions& options) {
  PlanBuilder builder(graph, options);
  const Node& node = graph.nodes[0];
  const int a = node.tensor(kA);
  const int b = node.tensor(kB);
  const Epilogue epilogue = std::get<Epilogue>(read_epilogue(graph, 0, node.tensor(kC)));
  const Tensor& result = graph.tensor(epilogue.result);
  const auto [bias, steps] = split_bias(graph, result, result.dims.size() - 1, epilogue.steps);
  const bool packs = options.constants.contains(graph.tensor(b).uid);

  const Product product(graph, a, b, epilogue.result, epilogue.steps);
  ProductProblem best = solve(product, steps, packs, bias.has_value());
  if (best.chosen.implementation.empty()) throw std::runtime_error("oneDNN has no matrix product for these operands");
  if (packs && !is_direct(best.chosen.implementation)) best = solve_as_convolution(product, steps, bias.has_value()).value_or(std::move(best));
  const FusedOperands operands{{a, best.a}, {b, best.b}, {bias.value_or(-1), best.bias}, {epilogue.result, best.c}};
  return finish_fused(builder, best.chosen, operands, best.view);
}

}  // namespace hipdnn_port::onednn
