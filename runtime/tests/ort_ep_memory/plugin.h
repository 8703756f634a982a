// What the tests ask of the execution provider library of plugin.cc.
#pragma once

#include <cstddef>

/// How ONNX Runtime called the library's interfaces.
struct PluginCounts {
  std::size_t allocs;
  std::size_t stream_allocs;
  std::size_t copies;
  /// Of them, those with a stream.
  std::size_t stream_copies;
  std::size_t computes;
  /// Of them, those that were given a stream.
  std::size_t stream_computes;
};

/// Environment variables that tell the library which port to open, and where its libraries lie.
inline constexpr const char* kPluginPort = "EP_MEMORY_TEST_PORT";
inline constexpr const char* kPluginDirectory = "EP_MEMORY_TEST_DIRECTORY";
inline constexpr const char* kPluginEpName = "MemoryTestExecutionProvider";

extern "C" PluginCounts pluginCounts();
