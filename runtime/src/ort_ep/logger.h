// Messages to ONNX Runtime's logger, one line each.
#pragma once

#include <new>
#include <string>

#include "names.h"
#include "ort.h"

namespace hipdnn_ep {

/// Refers to a logger of ONNX Runtime, which outlives it. Safe to use from several threads.
class Logger {
 public:
  Logger(const Ort& ort, const OrtLogger* logger) : ort_(ort), logger_(logger) {}

  void verbose(const std::string& message) const noexcept { log(ORT_LOGGING_LEVEL_VERBOSE, message); }
  void info(const std::string& message) const noexcept { log(ORT_LOGGING_LEVEL_INFO, message); }
  void warning(const std::string& message) const noexcept { log(ORT_LOGGING_LEVEL_WARNING, message); }

 private:
  void log(OrtLoggingLevel level, const std::string& message) const noexcept {
    if (logger_ == nullptr) return;
    try {
      OrtStatus* status = ort_.api->Logger_LogMessage(logger_, level, printable(message).c_str(), "libhipdnn_ep", 0, kEpName);
      if (status != nullptr) ort_.api->ReleaseStatus(status);
    } catch (const std::bad_alloc&) {
      return;  // nothing is logged for want of memory
    }
  }

  Ort ort_;
  const OrtLogger* logger_;
};

}  // namespace hipdnn_ep
