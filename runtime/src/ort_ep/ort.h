// ONNX Runtime's function tables as one value, and its objects and statuses as C++: what every file of the execution provider stands on.
#pragma once

#include <onnxruntime_c_api.h>

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "device/error.h"

namespace hipdnn_ep {

/// The tables of the ONNX Runtime that loaded this library. Immutable; valid as long as that library.
struct Ort {
  const OrtApi* api = nullptr;
  const OrtEpApi* ep = nullptr;
  const OrtModelEditorApi* editor = nullptr;
  /// Whether a provider's own events can be in its profile.
  bool has_profiling = false;
};

/// A call into ONNX Runtime failed; the message is its own.
class OrtFailure : public hipdnn_rt::Error {
 public:
  using Error::Error;
};

/// Take ownership of `status` and throw OrtFailure where it is one.
inline void check(const Ort& ort, OrtStatus* status) {
  if (status == nullptr) return;
  std::string message = ort.api->GetErrorMessage(status);
  ort.api->ReleaseStatus(status);
  throw OrtFailure(std::move(message));
}

/// A message with control characters written out, which names in a model may hold: it may reach a terminal.
std::string printable(std::string_view message);

/// A new failure status. Never ORT_EP_FAIL: Python would quietly run the model on the CPU provider instead. It does the same where it
/// cannot decode a message, so bytes of files do not reach it as they are.
OrtStatus* make_status(const Ort& ort, std::string_view message) noexcept;

/// Run `body` at the ABI's border: an exception becomes a status, a return is success.
template <typename Body>
OrtStatus* guard(const Ort& ort, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return nullptr;
  } catch (const std::exception& error) {
    return make_status(ort, error.what());
  } catch (...) {
    return make_status(ort, "an unknown exception in the hipDNN execution provider");
  }
}

/// Owns an object of ONNX Runtime; `release` is a member of one of its tables.
template <typename T>
using OrtOwned = std::unique_ptr<T, void (*)(T*)>;

}  // namespace hipdnn_ep
