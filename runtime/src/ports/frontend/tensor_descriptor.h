// The tensor descriptor.
#pragma once

#include "descriptor.h"

namespace hipdnn_port {

class TensorDescriptor final : public Descriptor {
 public:
  using Descriptor::Descriptor;
  /// Valid once finalized.
  const Tensor& tensor() const { return tensor_; }
  void get(int name, hipdnnBackendAttributeType_t type, std::int64_t requested, std::int64_t* actual, void* data) const override;

 protected:
  void on_set(int name) override;
  void on_finalize() override;

 private:
  Tensor tensor_;
};

}  // namespace hipdnn_port
