// Turns a graph of descriptors into the engines' graph, checking that it is one.
#include "graph_descriptor.h"

#include <map>
#include <utility>

#include "names.h"
#include "operation_descriptor.h"
#include "status.h"

namespace hipdnn_port {
namespace {

class GraphBuilder {
 public:
  void add(const OperationDescriptor& operation);
  Graph take() { return std::move(graph_); }

 private:
  struct Known {
    const Descriptor* descriptor;
    int index;
  };

  int tensor_index(const TensorDescriptor& descriptor);
  void add_tensors(const OperationDescriptor& operation, const AttributeSpec& row, Node& node);
  void note_read(const OperationDescriptor& operation, int index);
  void note_written(const OperationDescriptor& operation, int index);

  Graph graph_;
  std::map<std::int64_t, Known> by_uid_;
  std::vector<bool> read_, written_;  // per tensor
};

int GraphBuilder::tensor_index(const TensorDescriptor& descriptor) {
  const Tensor& tensor = descriptor.tensor();
  const auto next = static_cast<int>(graph_.tensors.size());
  const auto [entry, is_new] = by_uid_.try_emplace(tensor.uid, Known{&descriptor, next});
  if (entry->second.descriptor != &descriptor) {
    fail(HIPDNN_STATUS_BAD_PARAM, "two tensor descriptors have uid ", tensor.uid, ": ",
         describe(graph_.tensor(entry->second.index)), " and ", describe(tensor),
         "; use one descriptor object per tensor");
  }
  if (is_new) {
    graph_.tensors.push_back(tensor);
    read_.push_back(false);
    written_.push_back(false);
  }
  return entry->second.index;
}

void GraphBuilder::note_read(const OperationDescriptor& operation, int index) {
  const auto t = static_cast<std::size_t>(index);
  read_[t] = true;
  if (graph_.tensors[t].is_virtual && !written_[t]) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), " reads virtual tensor ", describe(graph_.tensors[t]),
         ", which no earlier operation writes; order operations topologically");
  }
}

void GraphBuilder::note_written(const OperationDescriptor& operation, int index) {
  const auto t = static_cast<std::size_t>(index);
  const Tensor& tensor = graph_.tensors[t];
  if (written_[t]) fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), " writes ", describe(tensor), ", which an earlier operation writes");
  if (read_[t]) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), " writes ", describe(tensor),
         ", which an earlier operation reads; order operations topologically");
  }
  if (tensor.value) fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), " writes ", describe(tensor), ", which has a baked value");
  for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] > 1 && tensor.strides[i] == 0) {
      fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), " writes ", describe(tensor), " with stride 0 in dim ", i);
    }
  }
  written_[t] = true;
}

void GraphBuilder::add_tensors(const OperationDescriptor& operation, const AttributeSpec& row, Node& node) {
  std::vector<int>& indices = node.tensors[static_cast<hipdnnBackendAttributeName_t>(row.name)];
  for (const auto& descriptor : operation.value(row.name).descriptors) {
    const int index = tensor_index(dynamic_cast<const TensorDescriptor&>(*descriptor));
    if (row.refers == Refers::input) note_read(operation, index);
    indices.push_back(index);
  }
}

void GraphBuilder::add(const OperationDescriptor& operation) {
  Node node{.type = operation.type(), .name = operation.string(HIPDNN_ATTR_OPERATION_NAME_EXT), .tensors = {}, .attributes = {}};
  for (const AttributeSpec& row : operation.spec().attributes) {
    if (row.need == Need::read_only || row.name == HIPDNN_ATTR_OPERATION_NAME_EXT || !operation.has(row.name)) continue;
    if (row.type == HIPDNN_TYPE_BACKEND_DESCRIPTOR) {
      add_tensors(operation, row, node);
    } else {
      node.attributes.emplace(static_cast<hipdnnBackendAttributeName_t>(row.name), attribute_value(operation, row.name));
    }
  }
  for (const auto& [name, indices] : node.tensors) {  // after all reads: an operation cannot read what it writes
    if (!is_output_attribute(node.type, name)) continue;
    for (const int index : indices) note_written(operation, index);
  }
  graph_.nodes.push_back(std::move(node));
}

/// Uids of the operands that the operations write.
std::vector<std::int64_t> results_of(const Graph& graph) {
  std::vector<std::int64_t> uids;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    if (graph.tensors[t].has_pointer() && graph.producer(static_cast<int>(t)) >= 0) uids.push_back(graph.tensors[t].uid);
  }
  return uids;
}

}  // namespace

Graph build_graph(const Descriptor& descriptor) {
  GraphBuilder builder;
  for (const auto& operation : descriptor.value(HIPDNN_ATTR_OPERATIONGRAPH_OPS).descriptors) {
    builder.add(dynamic_cast<const OperationDescriptor&>(*operation));
  }
  Graph graph = builder.take();
  const auto type_or_float = [&](int name) { return static_cast<hipdnnDataType_t>(descriptor.integer_or(name, HIPDNN_DATA_FLOAT)); };
  graph.name = descriptor.string(HIPDNN_ATTR_OPERATIONGRAPH_NAME_EXT);
  graph.compute_type = type_or_float(HIPDNN_ATTR_OPERATIONGRAPH_COMPUTE_DATA_TYPE_EXT);
  graph.intermediate_type = type_or_float(HIPDNN_ATTR_OPERATIONGRAPH_INTERMEDIATE_DATA_TYPE_EXT);
  graph.io_type = type_or_float(HIPDNN_ATTR_OPERATIONGRAPH_IO_DATA_TYPE_EXT);
  return graph;
}

void GraphDescriptor::on_finalize() {
  graph_ = std::make_shared<const Graph>(build_graph(*this));
  store_integers(HIPDNN_ATTR_OPERATIONGRAPH_RESULT_UIDS_MLIR_EXT, HIPDNN_TYPE_INT64, results_of(*graph_));
  handle_ = static_cast<const hipdnnHandle*>(pointers(HIPDNN_ATTR_OPERATIONGRAPH_HANDLE).at(0))->state;
}

}  // namespace hipdnn_port
