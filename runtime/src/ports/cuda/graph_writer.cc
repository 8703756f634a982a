#include "graph_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hipdnn_cuda {

using hipdnn_port::Graph;
using hipdnn_port::Node;
using hipdnn_port::Tensor;

GraphWriter::GraphWriter(const Graph& graph) : made_(graph) {
  made_.nodes.clear();
  for (const Tensor& tensor : graph.tensors) last_uid_ = std::max(last_uid_, tensor.uid);
}

int GraphWriter::intermediate(const Dims& dims, hipdnnDataType_t dtype) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.dims = dims;
  tensor.strides.assign(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 1;) tensor.strides[d - 1] = tensor.strides[d] * dims[d];
  tensor.is_virtual = true;
  return append(std::move(tensor));
}

int GraphWriter::number(float value, std::size_t rank) {
  Tensor tensor;
  tensor.dims.assign(rank, 1);
  tensor.strides = tensor.dims;
  tensor.value.emplace(sizeof value);
  std::memcpy(tensor.value->data(), &value, sizeof value);
  return append(std::move(tensor));
}

int GraphWriter::pointwise(hipdnnPointwiseMode_t mode, const std::vector<int>& inputs, int output, hipdnnDataType_t precision) {
  constexpr hipdnnBackendAttributeName_t names[] = {HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT,
                                                    HIPDNN_ATTR_OPERATION_POINTWISE_IN_2_EXT};
  Node node{HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "", {}, {}};
  for (std::size_t i = 0; i < inputs.size(); ++i) node.tensors[names[i]] = {inputs[i]};
  node.tensors[HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT] = {output};
  node.attributes = {{HIPDNN_ATTR_POINTWISE_MODE, Dims{mode}}, {HIPDNN_ATTR_POINTWISE_MATH_PREC, Dims{precision}}};
  append(std::move(node));
  return output;
}

int GraphWriter::append(Tensor tensor) {
  tensor.uid = ++last_uid_;
  made_.tensors.push_back(std::move(tensor));
  return static_cast<int>(made_.tensors.size()) - 1;
}

}  // namespace hipdnn_cuda
