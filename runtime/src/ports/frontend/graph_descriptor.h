// The operation graph descriptor.
#pragma once

#include <memory>

#include "descriptor.h"
#include "handle.h"

namespace hipdnn_port {

class GraphDescriptor final : public Descriptor {
 public:
  using Descriptor::Descriptor;
  /// Valid once finalized.
  const std::shared_ptr<const Graph>& graph() const { return graph_; }
  const HandleState& handle() const { return *handle_; }

 protected:
  void on_finalize() override;
  hipdnnStatus_t status_of_early_get() const override { return HIPDNN_STATUS_SUCCESS; }

 private:
  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<const HandleState> handle_;
};

/// The engines' view of the operations set so far. BAD_PARAM where they do not form one graph: two descriptors with one uid, an operation
/// before the producer of its input, a tensor written twice, a virtual tensor nobody writes.
Graph build_graph(const Descriptor& descriptor);

}  // namespace hipdnn_port
