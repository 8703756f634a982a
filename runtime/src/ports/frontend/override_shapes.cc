// Makes the descriptors of a graph again, at other shapes: finalizing them checks what the caller's were checked for.
#include "override_shapes.h"

#include <algorithm>
#include <functional>
#include <map>

#include "operation_descriptor.h"
#include "status.h"
#include "validate.h"

namespace hipdnn_port {
namespace {

using Dims = std::vector<std::int64_t>;

/// Dims of more than one element, slowest first.
std::vector<std::size_t> order_of(const Dims& dims, const Dims& strides) {
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] > 1) order.push_back(d);
  }
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t d) { return strides[d]; });
  return order;
}

void check(const Override& asked, const Tensor& tensor) {
  if (asked.dims.size() != tensor.dims.size()) {
    fail(HIPDNN_STATUS_BAD_PARAM, "override of ", describe(tensor), ": expected rank ", tensor.rank(), ", got ", show(asked.dims));
  }
  for (std::size_t d = 0; d < asked.dims.size(); ++d) {
    if (tensor.dims[d] > 1 && tensor.strides[d] == 0) {
      fail(HIPDNN_STATUS_BAD_PARAM, "override of ", describe(tensor), ": it broadcasts by a stride of zero");
    }
    if (asked.dims[d] < 1 || asked.dims[d] > tensor.dims[d] || asked.strides[d] < 1) {
      fail(HIPDNN_STATUS_BAD_PARAM, "override of ", describe(tensor), ": dims ", show(asked.dims), " with strides ", show(asked.strides),
           "; expected dims from 1 up to the tensor's, and positive strides");
    }
  }
  const std::vector<std::size_t> order = order_of(asked.dims, tensor.strides);
  if (!std::ranges::is_sorted(order, std::ranges::greater_equal(), [&](std::size_t d) { return asked.strides[d]; })) {
    fail(HIPDNN_STATUS_BAD_PARAM, "override of ", describe(tensor), ": strides ", show(asked.strides), " have another order than ",
         show(tensor.strides));
  }
}

/// Dims of inputs that broadcast, compared from the last.
Dims broadcast(const std::vector<const Dims*>& inputs, std::size_t rank) {
  Dims dims(rank, 1);
  for (const Dims* input : inputs) {
    for (std::size_t i = 0; i < std::min(rank, input->size()); ++i) {
      std::int64_t& dim = dims[rank - 1 - i];
      dim = std::max(dim, (*input)[input->size() - 1 - i]);
    }
  }
  return dims;
}

class Reshaper {
 public:
  Reshaper(const GraphDescriptor& graph, std::span<const Override> overrides) : graph_(graph) {
    for (const Override& asked : overrides) {
      const auto found = std::ranges::find(graph.graph()->tensors, asked.uid, &Tensor::uid);
      if (found == graph.graph()->tensors.end() || !found->has_pointer()) {
        fail(HIPDNN_STATUS_BAD_PARAM, "override uid ", asked.uid, " is no operand of the graph");
      }
      check(asked, *found);
      overrides_.emplace(asked.uid, &asked);
    }
  }

  std::shared_ptr<GraphDescriptor> run() {
    std::vector<std::shared_ptr<Descriptor>> operations;
    for (const auto& operation : graph_.value(HIPDNN_ATTR_OPERATIONGRAPH_OPS).descriptors) {
      operations.push_back(reshaped(dynamic_cast<const OperationDescriptor&>(*operation)));
    }
    return graph_.with_operations(operations);
  }

 private:
  std::shared_ptr<Descriptor> reshaped(const OperationDescriptor& operation) {
    for (const AttributeSpec& row : operation.spec().attributes) {
      if (row.refers != Refers::output || !operation.has(row.name)) continue;
      for (const auto& result : operation.value(row.name).descriptors) make_result(operation, row.name, result);
    }
    const auto made = std::make_shared<OperationDescriptor>(operation.spec());
    made->copy(operation, [&](const std::shared_ptr<Descriptor>& tensor) { return this->tensor(tensor); });
    made->finalize();
    return made;
  }

  /// A tensor that no operation so far has made: an operand of the graph.
  std::shared_ptr<Descriptor> tensor(const std::shared_ptr<Descriptor>& given) {
    if (const auto known = tensors_.find(given.get()); known != tensors_.end()) return known->second;
    const Tensor& tensor = dynamic_cast<const TensorDescriptor&>(*given).tensor();
    const auto asked = overrides_.find(tensor.uid);
    return asked == overrides_.end() ? keep(given, tensor.dims, tensor.strides) : keep(given, asked->second->dims, asked->second->strides);
  }

  void make_result(const OperationDescriptor& operation, int name, const std::shared_ptr<Descriptor>& given) {
    const Tensor& tensor = dynamic_cast<const TensorDescriptor&>(*given).tensor();
    if (!tensor.is_virtual || tensors_.contains(given.get())) return;
    const Dims dims = has_other_inputs(operation) ? dims_of_result(operation, name, tensor) : tensor.dims;
    keep(given, dims, dims == tensor.dims ? tensor.strides : packed_strides(dims, tensor.strides));
  }

  std::shared_ptr<Descriptor> keep(const std::shared_ptr<Descriptor>& given, const Dims& dims, const Dims& strides) {
    const auto made = std::make_shared<TensorDescriptor>(given->spec());
    made->copy(*given, {});
    made->set(HIPDNN_ATTR_TENSOR_DIMENSIONS, HIPDNN_TYPE_INT64, static_cast<std::int64_t>(dims.size()), dims.data());
    made->set(HIPDNN_ATTR_TENSOR_STRIDES, HIPDNN_TYPE_INT64, static_cast<std::int64_t>(strides.size()), strides.data());
    made->finalize();
    return tensors_[given.get()] = made;
  }

  const Dims& new_dims(const OperationDescriptor& operation, int name) {
    return dynamic_cast<const TensorDescriptor&>(*tensor(operation.value(name).descriptors.at(0))).tensor().dims;
  }

  bool has_other_inputs(const OperationDescriptor& operation) {
    return std::ranges::any_of(operation.spec().attributes, [&](const AttributeSpec& row) {
      return row.refers == Refers::input && operation.has(row.name) && new_dims(operation, row.name) != operation.tensor(row.name).dims;
    });
  }

  Dims dims_of_result(const OperationDescriptor& operation, int name, const Tensor& before) {
    const auto dims = [&](int input) -> const Dims& { return new_dims(operation, input); };
    switch (operation.type()) {
      case HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return convolution_dims(operation, dims(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X), dims(HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W));
      case HIPDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR: return resample_dims(operation, dims(HIPDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC));
      case HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: return matmul_dims(dims(HIPDNN_ATTR_OPERATION_MATMUL_ADESC), dims(HIPDNN_ATTR_OPERATION_MATMUL_BDESC));
      case HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: {
        std::vector<const Dims*> inputs;
        for (const int input : {HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT, HIPDNN_ATTR_OPERATION_POINTWISE_IN_2_EXT}) {
          if (operation.has(input)) inputs.push_back(&dims(input));
        }
        return broadcast(inputs, before.dims.size());
      }
      case HIPDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: {
        Dims made = dims(HIPDNN_ATTR_OPERATION_REDUCTION_XDESC);
        for (std::size_t d = 0; d < made.size(); ++d) made[d] = before.dims[d] == 1 ? 1 : made[d];
        return made;
      }
      default: return dims_of_norm(operation, name, before);
    }
  }

  /// Norms answer in the dims of what they normalize.
  Dims dims_of_norm(const OperationDescriptor& operation, int name, const Tensor& before) {
    static const std::map<int, int> operands{
        {HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_Y_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_X_EXT},
        {HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_Y_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_INFERENCE_VARIANCE_X_EXT},
        {HIPDNN_ATTR_OPERATION_LAYERNORM_Y_EXT, HIPDNN_ATTR_OPERATION_LAYERNORM_X_EXT},
        {HIPDNN_ATTR_OPERATION_RMSNORM_Y_EXT, HIPDNN_ATTR_OPERATION_RMSNORM_X_EXT}};
    const auto found = operands.find(name);
    if (found == operands.end()) {
      fail(HIPDNN_STATUS_NOT_SUPPORTED, operation.label(), ": the dims of ", describe(before), " cannot be told for other shapes");
    }
    return new_dims(operation, found->second);
  }

  const GraphDescriptor& graph_;
  std::map<std::int64_t, const Override*> overrides_;
  std::map<const Descriptor*, std::shared_ptr<Descriptor>> tensors_;
};

}  // namespace

std::shared_ptr<GraphDescriptor> at_shapes(const GraphDescriptor& graph, std::span<const Override> overrides) {
  return Reshaper(graph, overrides).run();
}

}  // namespace hipdnn_port
