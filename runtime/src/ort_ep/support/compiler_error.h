// Why the Python compiler gave no answer.
#pragma once

#include <chrono>
#include <string>

#include "device/error.h"

namespace hipdnn_ep {

/// A request that got no result. The message says what happened and what to do next.
class CompilerError : public hipdnn_rt::Error {
 public:
  enum class Cause {
    refused,      ///< The compiler works and reports an error, most often in the model.
    unavailable,  ///< There is no compiler that could be asked, it is of another version, or it lacks a tool for this target.
    crashed,      ///< The compiler's process could not be started or given the model, ended, or spoke nonsense and was stopped.
    timed_out     ///< The time limit passed; a compiler at work was stopped.
  };

  CompilerError(Cause cause, std::string message) : hipdnn_rt::Error(std::move(message)), cause_(cause) {}
  /// The compiler's own error: its class, "ModelError" for one, and its further text, which may have several lines.
  static CompilerError refused(const std::string& message, std::string kind, std::string detail);

  Cause cause() const { return cause_; }
  /// Class of the compiler's own error; empty where the cause is not `refused`.
  const std::string& kind() const { return kind_; }
  /// Traceback, diagnostics, or the last lines a dead compiler printed; often empty.
  const std::string& detail() const { return detail_; }
  void set_detail(std::string detail) { detail_ = std::move(detail); }

 private:
  Cause cause_;
  std::string kind_;
  std::string detail_;
};

/// "600 s", "1500 ms".
std::string in_words(std::chrono::milliseconds time);

}  // namespace hipdnn_ep
