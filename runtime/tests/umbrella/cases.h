// The cases of the umbrella's backend.
#pragma once

#include <onnxruntime_c_api.h>

#include <filesystem>
#include <functional>
#include <string>

#include "../check.h"
#include "runtime.h"

namespace umbrella_tests {

/// What the cases are given.
struct Paths {
  std::string onnxruntime;
  /// Folder of libhipdnn-backend.so and what lies beside it.
  std::filesystem::path libraries;
  std::string umbrella;
  std::string fake_provider;
  std::string no_provider;
  std::string models;
  std::string python;
};

/// ONNX Runtime's own library.
const OrtApiBase* open_onnxruntime(const Paths& paths);

/// Whether the process has the library open.
bool is_loaded(const std::string& path);

/// The message of a status, which is released; empty for success.
std::string take_message(const OrtApiBase* base, OrtStatus* status);

/// Run `body(thread)` on eight threads at once; throws check::Failure with the first exception's message.
void on_eight_threads(const std::function<void(unsigned)>& body);

/// The class behind the backend library, on fake providers.
void add_backend_cases(check::Suite& suite, const Paths& paths);
/// The backend library on the hipDNN provider.
void add_library_cases(check::Suite& suite, const Paths& paths);
/// An umbrella provider in ONNX Runtime that routes to the backend library.
void add_session_cases(check::Suite& suite, const Paths& paths);

}  // namespace umbrella_tests
