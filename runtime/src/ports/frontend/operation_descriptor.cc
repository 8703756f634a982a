// Finalizes an operation: its shape checks and its type for readers.
#include "operation_descriptor.h"

#include "names.h"
#include "status.h"

namespace hipdnn_port {

const Tensor& OperationDescriptor::tensor(int name) const { return descriptor<TensorDescriptor>(name)->tensor(); }

const Tensor* OperationDescriptor::find_tensor(int name) const { return has(name) ? &tensor(name) : nullptr; }

void OperationDescriptor::expect_dims(int name, const std::vector<std::int64_t>& expected) const {
  const Tensor* tensor = find_tensor(name);
  if (tensor != nullptr && tensor->dims != expected) {
    fail(HIPDNN_STATUS_BAD_PARAM, label(), ": ", attribute_name(name), " is ", describe(*tensor), ", expected dims ", show(expected));
  }
}

std::string OperationDescriptor::label() const {
  const std::string name = string(HIPDNN_ATTR_OPERATION_NAME_EXT);
  return name.empty() ? descriptor_name(type()) : text(descriptor_name(type()), " '", name, "'");
}

void OperationDescriptor::on_finalize() {
  if (spec().validate != nullptr) spec().validate(*this);
  store_integers(HIPDNN_ATTR_OPERATION_TYPE_EXT, HIPDNN_TYPE_OPERATION_TYPE_EXT, {spec().operation});
}

}  // namespace hipdnn_port
