#include "hipdnn_rt/error.h"

#include <array>

#include "hipdnn_rt/library.h"

namespace hipdnn_rt {
namespace {

std::string as_one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

}  // namespace

Error::Error(std::string message) : std::runtime_error(as_one_line(std::move(message))) {}

void check(const HipApi& api, hipError_t status, std::string_view call) {
  if (status == hipSuccess) return;
  const char* text = api.get_error_string(status);
  throw DeviceError(std::string(call) + ": HIP error " + std::to_string(status) + ": " + (text ? text : "no description"));
}

void check(const HipdnnApi& api, hipdnnStatus_t status, std::string_view call) {
  if (status == HIPDNN_STATUS_SUCCESS) return;
  throw DeviceError(std::string(call) + ": " + describe_failure(api, status));
}

std::string take_last_error(const HipdnnApi& api) {
  std::array<char, 4096> message{};
  api.get_last_error_string(message.data(), message.size());
  message.back() = '\0';
  return message.data();
}

std::string describe_failure(const HipdnnApi& api, hipdnnStatus_t status) {
  const std::string message = take_last_error(api);
  const char* name = api.get_error_string(status);
  return std::string(name ? name : "unknown status") + " (" + std::to_string(static_cast<int>(status)) + ")" +
         (message.empty() ? "" : ": " + message);
}

}  // namespace hipdnn_rt
