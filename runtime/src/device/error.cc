#include "device/error.h"

#include <array>
#include <utility>

#include "device/library.h"

namespace hipdnn_rt {
namespace {

std::string as_one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

}  // namespace

std::string describe_failure(const HipApi& api, hipError_t status) {
  const char* text = api.get_error_string(status);
  std::string words = "HIP error ";
  words += std::to_string(status);
  return words + ": " + (text ? text : "no description");
}

namespace {

std::string describe(const std::vector<RefusedPlan>& refusals) {
  std::string text = "the library refuses " + std::to_string(refusals.size()) + (refusals.size() == 1 ? " graph" : " graphs");
  const char* separator = ": ";
  for (const RefusedPlan& refusal : refusals) {
    text += separator + refusal.summary + (refusal.nodes.empty() ? "" : " (" + refusal.nodes + ")") + ": " + refusal.reason;
    separator = "; ";
  }
  return text;
}

}  // namespace

PlanRefusedError::PlanRefusedError(std::vector<RefusedPlan> refusals) : DeviceError(describe(refusals)), refusals_(std::move(refusals)) {}

Error::Error(std::string message) : std::runtime_error(as_one_line(std::move(message))) {}

void check(const HipApi& api, hipError_t status, std::string_view call) {
  if (status == hipSuccess) return;
  throw DeviceError(std::string(call) + ": " + describe_failure(api, status));
}

std::string describe_kernel_failure(const HipApi& api, hipError_t status) {
  const char* reason = api.last_kernel_error ? api.last_kernel_error() : nullptr;
  return reason != nullptr && *reason != '\0' ? std::string(reason) : describe_failure(api, status);
}

void check(const HipdnnApi& api, hipdnnStatus_t status, std::string_view call) {
  if (status == HIPDNN_STATUS_SUCCESS) return;
  throw LibraryError(std::string(call) + ": " + describe_failure(api, status), status);
}

bool LibraryError::is_refusal() const {
  switch (status_) {
    case HIPDNN_STATUS_NOT_SUPPORTED:
    // A graph that breaks a rule of the library's which the engine tables do not know.
    case HIPDNN_STATUS_BAD_PARAM:
    case HIPDNN_STATUS_BAD_PARAM_OUT_OF_BOUND:
    case HIPDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT:
    // What an engine's own failure to build a plan becomes, and a ranking that no policy could make.
    case HIPDNN_STATUS_INTERNAL_ERROR:
    case HIPDNN_STATUS_PLUGIN_ERROR:
      return true;
    default:
      return false;
  }
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
