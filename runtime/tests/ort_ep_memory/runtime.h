// ONNX Runtime with the execution provider library of the tests registered, and models for it.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "fixture.h"
#include "memory/memory_info.h"
#include "ort.h"
#include "plugin.h"

namespace memory_tests {

using hipdnn_ep::OrtOwned;

/// Elements of the tests' tensors.
inline constexpr std::int64_t kCount = 1000;

/// `kCount` numbers, from `start` on.
inline std::vector<float> ramp(float start) {
  std::vector<float> data(static_cast<std::size_t>(kCount));
  std::iota(data.begin(), data.end(), start);
  return data;
}

/// A function of ONNX Runtime's table that the provider does not call, so that the project's header has a gap there.
template <typename Function>
Function slot(const OrtApi* api, std::size_t index) {
  return reinterpret_cast<Function>(reinterpret_cast<void* const*>(api)[index]);
}

/// Registers the library on construction: one at a time, and no value, stream or session of it lives longer.
class Runtime {
 public:
  /// `port` is "hip" for the fake library or "host".
  Runtime(const Libraries& libraries, const std::string& port);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const hipdnn_ep::Ort& ort() const { return ort_; }
  PluginCounts counts() const { return counts_(); }

  OrtAllocator* shared_allocator(OrtDeviceMemoryType type) const;
  std::vector<std::pair<std::string, std::string>> stats(OrtDeviceMemoryType type) const;
  OrtOwned<OrtSyncStream> create_stream(const char* existing = nullptr) const;
  /// Floats in memory of the shared allocator of `type`.
  OrtOwned<OrtValue> device_tensor(std::int64_t count, OrtDeviceMemoryType type = OrtDeviceMemoryType_DEFAULT) const;
  /// Over `data`, which stays the caller's.
  OrtOwned<OrtValue> host_tensor(std::vector<float>& data) const;
  /// Throws OrtFailure where ONNX Runtime or the provider refuses.
  void copy(const OrtValue* source, OrtValue* destination, OrtSyncStream* stream = nullptr) const;

  OrtOwned<OrtSession> create_session(const std::string& model) const;
  void run(OrtSession& session, const OrtValue* input, OrtValue*& output) const;

 private:
  hipdnn_ep::Ort ort_;
  decltype(&pluginCounts) counts_ = nullptr;
  OrtOwned<OrtEnv> env_;
  const OrtEpDevice* device_ = nullptr;
};

void* data_of(const Runtime& runtime, OrtValue* value);

/// An ONNX model of one input "x" and one output "y" of `count` floats, with a chain of operators between.
std::string encode_chain(const std::vector<std::string>& operators, std::int64_t count);

}  // namespace memory_tests
