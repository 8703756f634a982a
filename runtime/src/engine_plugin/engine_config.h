// How an engine is configured, and what it says of itself: two flatbuffers, one read and one written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace hipdnn_plugin {

/// The one knob of every engine: how many threads plans and executions use, 0 for the CPUs that the process may use.
inline constexpr std::string_view threads_knob = "hipdnn_cpu.threads";
inline constexpr std::int64_t most_threads = 1024;

struct EngineConfig {
  std::int64_t engine_id = 0;
  int threads = 0;
};

/// Throws Failure with INVALID_VALUE for broken bytes, another knob, or a value that the knob does not have.
EngineConfig read_engine_config(std::span<const std::byte> bytes);

/// The details of an engine: its id, its knob with the values that it takes, that its plans can be serialized.
std::vector<std::byte> write_engine_details(std::int64_t engine_id);

}  // namespace hipdnn_plugin
