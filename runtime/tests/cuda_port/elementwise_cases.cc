#include "elementwise_cases.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "elementwise.h"

namespace {

using hipdnn_port::Graph;
using hipdnn_port::Node;
using hipdnn_port::Tensor;
using Dims = std::vector<std::int64_t>;

struct Shape {
  Dims dims, strides;
};

Tensor tensor_of(Shape shape, bool is_virtual = false) {
  Tensor made;
  made.dims = std::move(shape.dims);
  made.strides = std::move(shape.strides);
  made.is_virtual = is_virtual;
  return made;
}

/// (a + b) * c, with the sum in between.
Graph sum_then_product(const Shape& a, const Shape& b, const Shape& c) {
  Graph graph;
  for (const Shape& shape : {a, b, c}) graph.tensors.push_back(tensor_of(shape));
  graph.tensors.push_back(tensor_of(a, true));
  graph.tensors.push_back(tensor_of(a));
  const auto add = [&](hipdnnPointwiseMode_t mode, int x, int y, int result) {
    Node node{HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "", {}, {}};
    node.tensors = {{HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, {x}},
                    {HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT, {y}},
                    {HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT, {result}}};
    node.attributes = {{HIPDNN_ATTR_POINTWISE_MODE, Dims{mode}}};
    graph.nodes.push_back(node);
  };
  add(HIPDNN_POINTWISE_ADD, 0, 1, 3);
  add(HIPDNN_POINTWISE_MUL, 3, 2, 4);
  return graph;
}

void check_shape(const Tensor& tensor, const Dims& dims, const Dims& strides) {
  check::equal(tensor.dims, dims);
  check::equal(tensor.strides, strides);
}

const Shape c_order{{2, 3, 4, 5}, {60, 20, 5, 1}}, channels{{1, 3, 1, 1}, {3, 1, 1, 1}}, number{{1, 1, 1, 1}, {1, 1, 1, 1}};

void test_pixels_become_one_dim() {
  const Graph graph = sum_then_product(c_order, channels, number);
  check::that(hipdnn_cuda::is_elementwise(graph), "not elementwise");
  const Graph made = hipdnn_cuda::with_merged_dims(graph);
  for (const std::size_t full : {0U, 3U, 4U}) check_shape(made.tensors[full], {2, 3, 20}, {60, 20, 1});
  check_shape(made.tensors[1], {1, 3, 1}, {3, 1, 1});
  check_shape(made.tensors[2], {1, 1, 1}, {1, 1, 1});
}

void test_channels_last_have_channels_last() {
  const Shape last{{2, 3, 4, 5}, {60, 1, 15, 3}};
  const Graph made = hipdnn_cuda::with_merged_dims(sum_then_product(last, channels, last));
  for (const std::size_t full : {0U, 2U, 3U, 4U}) check_shape(made.tensors[full], {1, 40, 3}, {120, 3, 1});
  check_shape(made.tensors[1], {1, 1, 3}, {3, 3, 1});
}

void test_equal_tensors_become_rows() {
  const Shape flat{{3, 2048}, {2048, 1}};
  const Graph made = hipdnn_cuda::with_merged_dims(sum_then_product(flat, flat, {{1}, {1}}));
  check_shape(made.tensors[0], {1, 6, 1024}, {6144, 1024, 1});
  check_shape(made.tensors[2], {1, 1, 1}, {1, 1, 1});
  const Shape odd{{7, 5}, {5, 1}};
  check_shape(hipdnn_cuda::with_merged_dims(sum_then_product(odd, odd, odd)).tensors[4], {1, 35, 1}, {35, 1, 1});
}

void test_a_slice_keeps_its_stride() {
  const Shape slice{{2, 3, 4, 5}, {120, 40, 10, 1}};
  const Graph made = hipdnn_cuda::with_merged_dims(sum_then_product(c_order, slice, number));
  check_shape(made.tensors[0], {1, 24, 5}, {120, 5, 1});
  check_shape(made.tensors[1], {1, 24, 5}, {240, 10, 1});
}

void test_what_stays_as_it_is() {
  const auto is_kept = [](const Shape& a, const Shape& b) {
    const Graph graph = sum_then_product(a, b, number);
    check::equal(hipdnn_cuda::with_merged_dims(graph).tensors[0].dims, graph.tensors[0].dims);
    check::equal(hipdnn_cuda::with_merged_dims(graph).tensors[1].strides, graph.tensors[1].strides);
  };
  is_kept(c_order, {{2, 3, 4, 5}, {60, 1, 3, 12}});  // nothing lies next to each other in both: four dims are left
  is_kept(c_order, {{2, 1, 4, 1}, {4, 4, 1, 1}});    // four again
  is_kept(c_order, {{3, 1, 1}, {1, 1, 1}});          // another rank
}

std::string elementwise_refusal(const Graph& graph) { return hipdnn_cuda::why_not_elementwise(graph).value_or("it is taken"); }

void test_what_cudnn_must_not_have() {
  check::equal(elementwise_refusal(sum_then_product(c_order, c_order, number)), "it is taken");
  const Shape last{{2, 3, 4, 5}, {60, 1, 15, 3}}, one_image{{1, 3, 4, 5}, {60, 20, 5, 1}};
  check::equal(elementwise_refusal(sum_then_product(last, channels, number)), "it is taken");
  check::equal(elementwise_refusal(sum_then_product(one_image, channels, number)), "it is taken");
  check::contains(elementwise_refusal(sum_then_product(c_order, channels, number)), "broadcasts beyond two dims");
  check::contains(elementwise_refusal(sum_then_product(c_order, {{2, 1, 4, 1}, {4, 4, 1, 1}}, number)), "broadcasts beyond two dims");
  check::contains(elementwise_refusal(sum_then_product({{4, 4, 5}, {20, 5, 1}}, {{4, 5}, {5, 1}}, number)), "broadcasts beyond two dims");
  check::contains(elementwise_refusal(sum_then_product(c_order, {{2, 3, 4, 5}, {0, 20, 0, 0}}, number)), "broadcasts beyond two dims");
  check::equal(elementwise_refusal(sum_then_product(last, {{2, 3, 4, 5}, {0, 1, 0, 0}}, number)), "it is taken");
  Graph graph = sum_then_product(last, channels, last);
  graph.tensors[3].dims = {1, 3, 1, 1};
  check::contains(elementwise_refusal(graph), "intermediate of a pointwise graph that broadcasts");
  graph.tensors[3].dims = {1, 1, 1, 1};
  check::contains(elementwise_refusal(graph), "intermediate of a pointwise graph that broadcasts");
}

void test_indices_are_not_elementwise() {
  Graph graph = sum_then_product(c_order, channels, number);
  graph.nodes.back().attributes[HIPDNN_ATTR_POINTWISE_MODE] = Dims{HIPDNN_POINTWISE_GEN_INDEX};
  check::that(!hipdnn_cuda::is_elementwise(graph), "an index of a dim");
  graph.nodes.back().attributes[HIPDNN_ATTR_POINTWISE_MODE] = Dims{HIPDNN_POINTWISE_MUL};
  graph.nodes.front().type = HIPDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR;
  check::that(!hipdnn_cuda::is_elementwise(graph), "a reduction");
}

}  // namespace

void add_elementwise_cases(check::Suite& suite) {
  suite.add("elementwise: pixels become one dim", test_pixels_become_one_dim);
  suite.add("elementwise: channels-last tensors have channels last", test_channels_last_have_channels_last);
  suite.add("elementwise: equal tensors become rows", test_equal_tensors_become_rows);
  suite.add("elementwise: a slice keeps its stride", test_a_slice_keeps_its_stride);
  suite.add("elementwise: what stays as it is", test_what_stays_as_it_is);
  suite.add("elementwise: what cuDNN must not have", test_what_cudnn_must_not_have);
  suite.add("elementwise: indices are not", test_indices_are_not_elementwise);
}
