// What a library proposes for a graph: engines with their settings, best first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/descriptor.h"
#include "plan/device.h"

namespace hipdnn_rt {

/// One engine with its knobs. Used by one thread at a time.
struct Proposal {
  /// Finalized.
  Descriptor configuration;
  std::int64_t engine_id = 0;
  /// The engine's name, or its id in decimal where the library has no names.
  std::string engine_name;
  /// Knobs that the configuration sets, "NAME=VALUE NAME=VALUE"; empty where it sets none. Tells an engine's proposals apart.
  std::string knobs;
  /// Whether the knobs are those that the device's options name.
  bool is_configured = false;

  /// "MIOPEN_ENGINE" or "CUDNN_ENGINE_38 (CUDNN_KNOB_2=1)".
  std::string describe() const;
};

/// What the library offers for a finalized graph, in its order, behind the preferred engine with the device's knobs. Configurations that it does not
/// finalize are left out; why is added to `reasons`. Throws DeviceError where the heuristic itself fails.
std::vector<Proposal> propose(const Device& device, const Descriptor& graph, const std::string& executable, std::string& reasons);

/// "NAME=VALUE" of a finalized knob choice, whose value is an integer, a number or a text; empty where the library does not tell.
std::string describe_knob(const Descriptor& choice);

/// The id that hipDNN gives an engine: FNV-1a of its name.
std::int64_t engine_id_of(const std::string& name);

}  // namespace hipdnn_rt
