// The descriptor of one operation of a graph, whichever it is.
#pragma once

#include <memory>
#include <span>

#include "descriptor.h"
#include "tensor_descriptor.h"

namespace hipdnn_port {

class OperationDescriptor final : public Descriptor {
 public:
  using Descriptor::Descriptor;

  /// The single tensor under `name`; an internal error where it is not set.
  const Tensor& tensor(int name) const;
  /// The same, or null where it is not set.
  const Tensor* find_tensor(int name) const;
  /// Throws unless the tensor under `name` has these dims, or is not set.
  void expect_dims(int name, const std::vector<std::int64_t>& expected) const;
  /// "HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR 'attention scores'".
  std::string label() const;

 protected:
  void on_finalize() override;
};

}  // namespace hipdnn_port
