// How the plugin fails: exceptions inside, a status and the thread's last error at its boundary; and its log.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "hipdnn_plugin.h"

namespace hipdnn_plugin {

/// What a call answers, with the reason.
class Failure : public std::runtime_error {
 public:
  Failure(hipdnnPluginStatus_t status, const std::string& reason) : std::runtime_error(reason), status_(status) {}
  hipdnnPluginStatus_t status() const { return status_; }

 private:
  hipdnnPluginStatus_t status_;
};

/// Broken or unknown: what the caller gave cannot be right.
[[noreturn]] inline void refuse_value(const std::string& reason) { throw Failure(HIPDNN_PLUGIN_STATUS_INVALID_VALUE, reason); }
/// A graph that may be right, and that these engines do not take.
[[noreturn]] inline void refuse_graph(const std::string& reason) { throw Failure(HIPDNN_PLUGIN_STATUS_NOT_APPLICABLE, reason); }

/// The argument behind a pointer. Throws BAD_PARAM where it is null.
template <typename T>
T& require(T* argument, std::string_view name) {
  if (argument == nullptr) throw Failure(HIPDNN_PLUGIN_STATUS_BAD_PARAM, std::string(name) + " is null");
  return *argument;
}

/// The status of the exception that is being handled; its words, after the call's name, become the thread's last error.
hipdnnPluginStatus_t failed(std::string_view call) noexcept;

/// Run the body of a function of the interface. No exception leaves it.
template <typename Body>
hipdnnPluginStatus_t guard(std::string_view call, Body&& body) noexcept {
  try {
    body();
    return HIPDNN_PLUGIN_STATUS_SUCCESS;
  } catch (...) {
    return failed(call);
  }
}

/// Why the calling thread's last failed call failed. Valid until its next one.
const char* last_error() noexcept;

/// The process's log; any thread.
void set_log_callback(hipdnnCallback_t callback) noexcept;
void set_log_level(hipdnnSeverity_t level) noexcept;
void log(hipdnnSeverity_t severity, std::string line) noexcept;

}  // namespace hipdnn_plugin
