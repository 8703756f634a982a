// Measures the time between setting START and setting STOP on one descriptor.
#pragma once

#include <chrono>
#include <optional>

#include "descriptor.h"

namespace hipdnn_port {

/// Work on a stream of this library is done when the call that ordered it returns, so the wall clock between the two sets is the time of
/// what was executed between them.
class ProfilingDescriptor final : public Descriptor {
 public:
  using Descriptor::Descriptor;

 protected:
  void on_set(int name) override;
  void on_finalize() override;

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> start_, stop_;
};

}  // namespace hipdnn_port
