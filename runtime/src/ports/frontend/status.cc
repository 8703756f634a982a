// The per-thread last error of the C API.
#include "status.h"

#include <algorithm>
#include <array>

#include "log.h"

namespace hipdnn_port {
namespace {

// Per thread because the ABI says so; a plain array because reporting an error must not need memory.
struct LastError {
  std::array<char, 4096> message{};
  std::size_t length = 0;
};

LastError& last_error() noexcept {
  thread_local LastError error;
  return error;
}

}  // namespace

std::string show(std::span<const std::int64_t> values) {
  std::string shown = "[";
  for (std::size_t i = 0; i < values.size(); ++i) shown += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  return shown + "]";
}

void set_last_error(std::string_view message) noexcept {
  LastError& error = last_error();
  error.length = std::min(message.size(), error.message.size());
  std::copy_n(message.begin(), error.length, error.message.begin());
}

void copy_last_error(std::span<char> buffer, bool clear) noexcept {
  LastError& error = last_error();
  if (!buffer.empty()) {
    const std::size_t length = std::min(error.length, buffer.size() - 1);
    std::copy_n(error.message.begin(), length, buffer.begin());
    buffer[length] = '\0';
  }
  if (clear) error.length = 0;
}

hipdnnStatus_t report_failure(std::string_view function, hipdnnStatus_t status, std::string_view message) noexcept {
  try {
    const std::string full = text(function, ": ", message);
    set_last_error(full);
    log(HIPDNN_SEV_ERROR, full);
  } catch (...) {
    set_last_error(message);  // no memory for the longer text
  }
  return status;
}

}  // namespace hipdnn_port
