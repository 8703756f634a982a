// ONNX Runtime with an execution provider's library registered, and sessions that run models of one input and one output.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ort.h"

namespace ort_tests {

using hipdnn_ep::OrtOwned;

/// Of the provider's devices; `none` leaves the model to ONNX Runtime's own CPU provider.
enum class DeviceKind { cpu, gpu, none };

/// What a session is made of.
struct SessionSettings {
  std::string model;
  DeviceKind device = DeviceKind::cpu;
  /// The provider's, without prefix.
  std::map<std::string, std::string> options;
  /// The session's own entries.
  std::map<std::string, std::string> entries;
};

/// Opens ONNX Runtime and registers a library; sessions go before it. Safe to use from several threads.
class Runtime {
 public:
  /// A `registration` that ends in ".virtual" gives the hipDNN provider a virtual GPU. Throws where something is not to be had.
  Runtime(const std::string& onnxruntime, const std::string& registration, const std::string& library, std::string provider);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const hipdnn_ep::Ort& ort() const { return ort_; }
  OrtEnv* env() const { return env_.get(); }

  /// Throws OrtFailure with ONNX Runtime's message. The session runs on the calling thread only, but for threads of the provider.
  OrtOwned<OrtSession> create_session(const SessionSettings& settings) const;

 private:
  const OrtEpDevice* device(DeviceKind kind) const;

  hipdnn_ep::Ort ort_;
  std::string registration_;
  std::string provider_;
  OrtOwned<OrtEnv> env_;
};

std::size_t element_count(const std::vector<std::int64_t>& dims);

/// A float tensor over memory of its own.
class Tensor {
 public:
  Tensor(const Runtime& runtime, std::vector<std::int64_t> dims, std::vector<float> data);

  const OrtValue* value() const { return value_.get(); }
  OrtValue* value() { return value_.get(); }
  std::vector<float>& data() { return data_; }

 private:
  std::vector<std::int64_t> dims_;
  std::vector<float> data_;
  OrtOwned<OrtValue> value_;
};

/// A float tensor in the provider's memory of its virtual GPU, with whatever is there.
OrtOwned<OrtValue> make_device_tensor(const Runtime& runtime, const std::vector<std::int64_t>& dims);

/// Numbers between -1 and 1 that depend on `seed` alone.
std::vector<float> random_values(std::size_t count, unsigned seed);

/// A model in ONNX Runtime; the runtime outlives it. Runs may be concurrent.
class Session {
 public:
  Session(const Runtime& runtime, const SessionSettings& settings);

  /// Compute "y" of "x" into `output`, or into memory of ONNX Runtime's that is put there where it is null. Throws OrtFailure.
  void run(const OrtValue* input, OrtValue*& output) const;
  /// The numbers that come out.
  std::vector<float> run(const Tensor& input) const;
  /// The numbers of a value; it lives longer than they are used.
  std::span<const float> numbers(OrtValue* value) const;

  /// Names of the nodes of each part that `provider` took.
  std::vector<std::vector<std::string>> parts(std::string_view provider) const;

 private:
  const Runtime& runtime_;
  OrtOwned<OrtSession> session_;
};

}  // namespace ort_tests
