// How failures travel: exceptions inside the library, a status and a per-thread message at the C boundary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "hipdnn_backend.h"

namespace hipdnn_port {

/// An error with the status the C caller receives.
class StatusError : public std::runtime_error {
 public:
  StatusError(hipdnnStatus_t status, const std::string& message) : std::runtime_error(message), status_(status) {}
  hipdnnStatus_t status() const { return status_; }

 private:
  hipdnnStatus_t status_;
};

/// Joins its arguments as text.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

/// Throws a StatusError whose message is the joined arguments.
template <class... Parts>
[[noreturn]] void fail(hipdnnStatus_t status, const Parts&... parts) {
  throw StatusError(status, text(parts...));
}

/// "[1, 3, 224, 224]".
std::string show(std::span<const std::int64_t> values);

/// Keeps `message` (cut at a fixed length, no allocation) as the calling thread's last error.
void set_last_error(std::string_view message) noexcept;
/// Copies the calling thread's last error into `buffer`, cut and terminated; forgets it if `clear`.
void copy_last_error(std::span<char> buffer, bool clear) noexcept;
/// Records the failure of the C function `function` for this thread and in the log; returns `status`.
hipdnnStatus_t report_failure(std::string_view function, hipdnnStatus_t status, std::string_view message) noexcept;

/// Runs the body of the C function `function`. No exception leaves it: each becomes a status and a last-error message.
template <class Body>
hipdnnStatus_t guard(std::string_view function, Body&& body) noexcept {
  try {
    body();
    return HIPDNN_STATUS_SUCCESS;
  } catch (const StatusError& error) {
    return report_failure(function, error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return report_failure(function, HIPDNN_STATUS_ALLOC_FAILED, "out of memory");
  } catch (const std::exception& error) {
    return report_failure(function, HIPDNN_STATUS_INTERNAL_ERROR, error.what());
  } catch (...) {
    return report_failure(function, HIPDNN_STATUS_INTERNAL_ERROR, "unknown exception");
  }
}

/// Throws BAD_PARAM_NULL_POINTER, naming the argument, where `pointer` is null.
template <class T>
T& require_argument(T* pointer, std::string_view argument) {
  if (pointer == nullptr) fail(HIPDNN_STATUS_BAD_PARAM_NULL_POINTER, argument, " is null");
  return *pointer;
}

}  // namespace hipdnn_port
