// cuda_port_tests [FILTER]: how kernels are launched; graphs as matmuls in the terms of BLAS. The reference is the graph, computed element
// by element by its strides; the matmul is computed as BLAS says, in column-major order.
#include <algorithm>
#include <array>
#include <cmath>

#include "check.h"
#include "elementwise_cases.h"
#include "launch_cases.h"
#include "norm_cases.h"
#include "order_cases.h"
#include "matmul.h"

namespace {

using hipdnn_cuda::Activation;
using hipdnn_cuda::Matrix;
using hipdnn_cuda::Matmul;
using hipdnn_port::Graph;
using hipdnn_port::Node;
using hipdnn_port::Tensor;
using Dims = std::vector<std::int64_t>;

Dims packed(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

/// The strides of a tensor whose last two dims lie the other way round.
Dims transposed(Dims dims) {
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  Dims strides = packed(dims);
  std::swap(strides[dims.size() - 1], strides[dims.size() - 2]);
  return strides;
}

/// Builds a graph and the memory of its operands.
class Builder {
 public:
  int tensor(const Dims& dims, const Dims& strides, bool is_virtual = false) {
    Tensor made;
    made.uid = static_cast<std::int64_t>(graph.tensors.size()) + 10;
    made.dims = dims;
    made.strides = strides;
    made.is_virtual = is_virtual;
    graph.tensors.push_back(made);
    return static_cast<int>(graph.tensors.size()) - 1;
  }
  int matmul(int a, int b, int c) {
    node(HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
         {{HIPDNN_ATTR_OPERATION_MATMUL_ADESC, {a}}, {HIPDNN_ATTR_OPERATION_MATMUL_BDESC, {b}}, {HIPDNN_ATTR_OPERATION_MATMUL_CDESC, {c}}});
    return c;
  }
  Node& pointwise(hipdnnPointwiseMode_t mode, int x, int y, int out) {
    Node& made = node(HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                      {{HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, {x}}, {HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT, {out}}});
    if (y >= 0) made.tensors[HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT] = {y};
    made.attributes[HIPDNN_ATTR_POINTWISE_MODE] = std::vector<std::int64_t>{mode};
    return made;
  }

  Graph graph;

 private:
  Node& node(hipdnnBackendDescriptorType_t type, std::map<hipdnnBackendAttributeName_t, std::vector<int>> tensors) {
    graph.nodes.push_back({type, "", std::move(tensors), {}});
    return graph.nodes.back();
  }
};

using Memory = std::vector<double>;

std::int64_t offset(const Tensor& tensor, const Dims& index) {
  std::int64_t at = 0;
  for (std::size_t d = 0; d < index.size(); ++d) at += (tensor.dims[d] == 1 ? 0 : index[d]) * tensor.strides[d];
  return at;
}

std::vector<Memory> filled(const Graph& graph) {
  std::vector<Memory> memory;
  for (const Tensor& tensor : graph.tensors) {
    std::int64_t last = 0;
    for (std::size_t d = 0; d < tensor.dims.size(); ++d) last += (tensor.dims[d] - 1) * tensor.strides[d];
    Memory& made = memory.emplace_back(static_cast<std::size_t>(last + 1));
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<double>((i * 7 + memory.size() * 5) % 11) - 5;
  }
  return memory;
}

template <class Body>
void for_each(const Dims& dims, Body body) {
  Dims index(dims.size(), 0);
  for (;;) {
    body(index);
    std::size_t d = dims.size();
    while (d > 0 && ++index[d - 1] == dims[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

/// The graph, node by node.
void compute(const Graph& graph, std::vector<Memory>& memory) {
  const auto at = [&](int tensor, const Dims& index) -> double& {
    const auto t = static_cast<std::size_t>(tensor);
    return memory[t][static_cast<std::size_t>(offset(graph.tensors[t], index))];
  };
  for (const Node& node : graph.nodes) {
    if (node.type == HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
      const int a = node.tensor(HIPDNN_ATTR_OPERATION_MATMUL_ADESC), b = node.tensor(HIPDNN_ATTR_OPERATION_MATMUL_BDESC);
      const int c = node.tensor(HIPDNN_ATTR_OPERATION_MATMUL_CDESC);
      const std::int64_t inner = graph.tensors[static_cast<std::size_t>(a)].dims.back();
      for_each(graph.tensors[static_cast<std::size_t>(c)].dims, [&](const Dims& index) {
        Dims left = index, right = index;
        double sum = 0;
        for (std::int64_t k = 0; k < inner; ++k) {
          left.back() = right[right.size() - 2] = k;
          sum += at(a, left) * at(b, right);
        }
        at(c, index) = sum;
      });
      continue;
    }
    const int x = node.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT), out = node.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT);
    for_each(graph.tensors[static_cast<std::size_t>(out)].dims, [&](const Dims& index) {
      const double value = at(x, index);
      at(out, index) = node.integer(HIPDNN_ATTR_POINTWISE_MODE) == HIPDNN_POINTWISE_ADD
                           ? value + at(node.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT), index)
                           : std::max(value, 0.0);
    });
  }
}

/// The matmul as BLAS computes it, on memory by position among its uids.
void compute(const Matmul& matmul, const std::vector<Memory*>& memory) {
  const auto element = [&](std::size_t operand, const Matrix& matrix, std::int64_t batch, std::int64_t row, std::int64_t column) -> double& {
    if (matrix.is_transposed) std::swap(row, column);
    check::that(row < matrix.rows && column < matrix.columns, "outside of a matrix");
    return memory[operand]->at(static_cast<std::size_t>(batch * matrix.batch_stride + column * matrix.leading + row));
  };
  const std::int64_t inner = matmul.left.is_transposed ? matmul.left.rows : matmul.left.columns;
  for (std::int64_t batch = 0; batch < matmul.batch; ++batch) {
    for (std::int64_t column = 0; column < matmul.result.columns; ++column) {
      for (std::int64_t row = 0; row < matmul.result.rows; ++row) {
        double sum = matmul.addend ? element(*matmul.addend_operand, *matmul.addend, batch, row, column) : 0;
        if (matmul.bias_operand) sum += memory[*matmul.bias_operand]->at(static_cast<std::size_t>(row));
        for (std::int64_t k = 0; k < inner; ++k) {
          sum += element(matmul.left_operand, matmul.left, batch, row, k) * element(matmul.right_operand, matmul.right, batch, k, column);
        }
        if (matmul.activation == Activation::relu) sum = std::max(sum, 0.0);
        element(matmul.result_operand, matmul.result, batch, row, column) = sum;
      }
    }
  }
}

struct Form {
  Dims a, b;
  bool is_a_transposed = false, is_b_transposed = false;
  bool has_bias = false, has_addend = false, has_relu = false;
  std::int64_t batches = 1;
};

Builder built(const Form& form) {
  Builder builder;
  Dims c = form.a;
  c.back() = form.b.back();
  int value = builder.tensor(c, packed(c), form.has_bias || form.has_addend || form.has_relu);
  const int a = builder.tensor(form.a, form.is_a_transposed ? transposed(form.a) : packed(form.a));
  const int b = builder.tensor(form.b, form.is_b_transposed ? transposed(form.b) : packed(form.b));
  builder.matmul(a, b, value);
  const auto next = [&](hipdnnPointwiseMode_t mode, int other, bool is_last, bool is_left = true) {
    const int out = builder.tensor(c, packed(c), !is_last);
    builder.pointwise(mode, is_left ? value : other, is_left ? other : value, out);
    value = out;
  };
  if (form.has_addend) next(HIPDNN_POINTWISE_ADD, builder.tensor(c, packed(c)), !form.has_bias && !form.has_relu, false);
  Dims row(c.size(), 1);
  row.back() = c.back();
  if (form.has_bias) next(HIPDNN_POINTWISE_ADD, builder.tensor(row, packed(row)), !form.has_relu);
  if (form.has_relu) next(HIPDNN_POINTWISE_RELU_FWD, -1, true);
  return builder;
}

void test_matmuls(const Form& form) {
  const Builder builder = built(form);
  std::string reason;
  const auto matmul = hipdnn_cuda::as_matmul(builder.graph, reason);
  check::that(matmul.has_value(), reason);
  check::equal(matmul->batch, form.batches, "batches");
  std::vector<Memory> expected = filled(builder.graph), got = expected;
  compute(builder.graph, expected);
  std::vector<Memory*> operands;
  std::size_t result = 0;
  for (std::size_t t = 0; t < builder.graph.tensors.size(); ++t) {
    if (!builder.graph.tensors[t].has_pointer()) continue;
    if (operands.size() == matmul->result_operand) result = t;
    operands.push_back(&got[t]);
  }
  check::equal(matmul->uids.size(), operands.size());
  compute(*matmul, operands);
  check::equal(got[result], expected[result]);
}

std::string refusal(const Graph& graph) {
  std::string reason;
  check::that(!hipdnn_cuda::as_matmul(graph, reason).has_value(), "it is taken");
  return reason;
}

void test_alignment_is_that_of_each_tensor() {
  Builder builder = built({.a = {4, 8}, .b = {8, 6}, .has_addend = true});
  for (std::size_t t = 0; t < builder.graph.tensors.size(); ++t) builder.graph.tensors[t].byte_alignment = std::int64_t{4} << t;
  std::string reason;
  const auto matmul = hipdnn_cuda::as_matmul(builder.graph, reason);
  check::that(matmul.has_value(), reason);
  check::equal(matmul->right.alignment, 8, "A");
  check::equal(matmul->left.alignment, 16, "B");
  check::equal(matmul->addend->alignment, 32, "what is added");
  check::equal(matmul->result.alignment, 64, "result");
}

/// A row-major A by a B whose columns lie along memory, times a number.
Builder product_of_eight_bits() {
  Builder builder;
  const int sums = builder.tensor({4, 32}, {32, 1}, true), a = builder.tensor({4, 16}, {16, 1}), b = builder.tensor({16, 32}, {1, 16});
  builder.matmul(a, b, sums);
  const int factor = builder.tensor({1}, {1}), out = builder.tensor({4, 32}, {32, 1});
  builder.pointwise(HIPDNN_POINTWISE_MUL, sums, factor, out);
  const float number = 0.25F;
  const auto* bytes = reinterpret_cast<const std::byte*>(&number);
  const auto at = [&](int tensor) -> hipdnn_port::Tensor& { return builder.graph.tensors[static_cast<std::size_t>(tensor)]; };
  at(factor).value.emplace(bytes, bytes + sizeof number);
  at(a).dtype = HIPDNN_DATA_FP8_E5M2;
  at(b).dtype = HIPDNN_DATA_FP8_E4M3;
  at(out).dtype = HIPDNN_DATA_HALF;
  return builder;
}

void test_products_of_eight_bits() {
  const Builder builder = product_of_eight_bits();
  std::string reason;
  const auto matmul = hipdnn_cuda::as_matmul(builder.graph, reason);
  check::that(matmul.has_value(), reason);
  check::equal(matmul->scale, 0.25F, "the number");
  check::that(matmul->left_dtype == HIPDNN_DATA_FP8_E4M3 && matmul->right_dtype == HIPDNN_DATA_FP8_E5M2 && matmul->dtype == HIPDNN_DATA_HALF, "types");
  check::that(matmul->left.is_transposed && !matmul->right.is_transposed, "sums are not along memory");

  Builder both = product_of_eight_bits();
  both.graph.tensors[2].dtype = HIPDNN_DATA_FP8_E5M2;
  check::contains(refusal(both.graph), "both operands are of E5M2");
  Builder across = product_of_eight_bits();
  across.graph.tensors[2].strides = {32, 1};
  check::contains(refusal(across.graph), "not along memory");
  Builder mixed = product_of_eight_bits();
  mixed.graph.tensors[1].dtype = HIPDNN_DATA_HALF;
  check::contains(refusal(mixed.graph), "types of operands differ");
}

void test_what_is_no_matmul() {
  Builder convolution;
  convolution.pointwise(HIPDNN_POINTWISE_ADD, convolution.tensor({2, 2}, {2, 1}), convolution.tensor({2, 2}, {2, 1}), convolution.tensor({2, 2}, {2, 1}));
  check::contains(refusal(convolution.graph), "does not begin with a matmul");

  Builder gelu = built({.a = {4, 8}, .b = {8, 6}, .has_relu = true});
  gelu.graph.nodes.back().attributes[HIPDNN_ATTR_POINTWISE_MODE] = std::vector<std::int64_t>{HIPDNN_POINTWISE_GELU_FWD};
  check::contains(refusal(gelu.graph), "neither an addition, nor ReLU");

  Builder clip = built({.a = {4, 8}, .b = {8, 6}, .has_relu = true});
  clip.graph.nodes.back().attributes[HIPDNN_ATTR_POINTWISE_RELU_UPPER_CLIP] = std::vector<double>{6.0};
  check::contains(refusal(clip.graph), "bounds");

  Builder gaps = built({.a = {4, 8}, .b = {8, 6}});
  gaps.graph.tensors[1].strides = {16, 2};
  check::contains(refusal(gaps.graph), "no stride of 1");

  Builder partial = built({.a = {2, 3, 4, 8}, .b = {2, 3, 8, 6}});
  partial.graph.tensors[2].dims = {1, 3, 8, 6};
  check::contains(refusal(partial.graph), "broadcast in part");

  Builder heads = built({.a = {2, 3, 4, 8}, .b = {2, 3, 8, 6}});
  heads.graph.tensors[1].strides = {96, 8, 24, 1};
  check::contains(refusal(heads.graph), "one stride apart");

  Builder sizes = built({.a = {4, 8}, .b = {8, 6}});
  sizes.graph.tensors[2].dims = {7, 6};
  check::contains(refusal(sizes.graph), "sizes");

  Builder repeated = built({.a = {2, 3, 4, 8}, .b = {2, 3, 8, 6}});
  repeated.graph.tensors[1].strides = {32, 0, 8, 1};
  check::contains(refusal(repeated.graph), "one stride apart");

  Builder lower = built({.a = {4, 8}, .b = {8, 6}, .has_addend = true});
  lower.graph.tensors[3].dims = lower.graph.tensors[3].strides = {1};
  check::contains(refusal(lower.graph), "rank");

  Builder wide = built({.a = {4, 8}, .b = {8, 6}});
  for (Tensor& tensor : wide.graph.tensors) tensor.dtype = HIPDNN_DATA_DOUBLE;
  check::contains(refusal(wide.graph), "f32, f16 or bf16");

  Builder shifted = built({.a = {4, 8}, .b = {8, 6}, .has_bias = true});
  shifted.graph.tensors[3].byte_alignment = 8;
  check::contains(refusal(shifted.graph), "aligned");

  Builder types = built({.a = {4, 8}, .b = {8, 6}, .has_bias = true});
  types.graph.tensors[3].dtype = HIPDNN_DATA_HALF;
  check::contains(refusal(types.graph), "types");
}

}  // namespace

int main(int argc, char** argv) {
  check::Suite suite;
  const std::array<std::pair<const char*, Form>, 12> forms{{
      {"alone", {.a = {4, 8}, .b = {8, 6}}},
      {"B lies transposed", {.a = {4, 8}, .b = {8, 6}, .is_b_transposed = true}},
      {"A lies transposed", {.a = {4, 8}, .b = {8, 6}, .is_a_transposed = true}},
      {"bias", {.a = {4, 8}, .b = {8, 6}, .has_bias = true}},
      {"matrix, bias and ReLU", {.a = {4, 8}, .b = {8, 6}, .is_b_transposed = true, .has_bias = true, .has_addend = true, .has_relu = true}},
      {"one row", {.a = {1, 8}, .b = {8, 6}, .has_bias = true}},
      {"one column", {.a = {4, 8}, .b = {8, 1}, .has_bias = true}},
      {"one inner element", {.a = {4, 1}, .b = {1, 6}, .has_addend = true}},
      {"batch", {.a = {3, 4, 8}, .b = {3, 8, 6}, .is_b_transposed = true, .has_bias = true, .has_addend = true, .batches = 3}},
      {"batch of two dims", {.a = {2, 3, 4, 8}, .b = {2, 3, 8, 6}, .has_relu = true, .batches = 6}},
      {"one B for the batch", {.a = {2, 3, 4, 8}, .b = {1, 1, 8, 6}, .has_bias = true, .has_addend = true}},
      {"one B for the batch of an A that lies transposed", {.a = {3, 4, 8}, .b = {1, 8, 6}, .is_a_transposed = true, .batches = 3}},
  }};
  for (const auto& [name, form] : forms) suite.add(std::string("matmul: ") + name, [form = form] { test_matmuls(form); });
  suite.add("matmul: alignment", test_alignment_is_that_of_each_tensor);
  suite.add("matmul: of eight bits", test_products_of_eight_bits);
  suite.add("matmul: what is none", test_what_is_no_matmul);
  add_launch_cases(suite);
  add_order_cases(suite);
  add_elementwise_cases(suite);
  add_norm_cases(suite);
  return suite.run(argc > 1 ? argv[1] : "");
}
