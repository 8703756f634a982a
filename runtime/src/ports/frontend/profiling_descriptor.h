// Measures the time between setting START and setting STOP on one descriptor.
#pragma once

#include <memory>
#include <type_traits>

#include "descriptor.h"
#include "hip_runtime_abi.h"

namespace hipdnn_port {

/// By events of the port on the handle's stream: the time of what was ordered there between the two sets.
class ProfilingDescriptor final : public Descriptor {
 public:
  using Descriptor::Descriptor;

 protected:
  void on_set(int name) override;
  void on_finalize() override;

 private:
  using Event = std::unique_ptr<std::remove_pointer_t<hipEvent_t>, decltype(&hipEventDestroy)>;
  /// An event recorded on the handle's stream.
  Event record() const;

  Event start_{nullptr, &hipEventDestroy}, stop_{nullptr, &hipEventDestroy};
};

}  // namespace hipdnn_port
