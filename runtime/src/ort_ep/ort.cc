#include "ort.h"

#include <nlohmann/json.hpp>

namespace hipdnn_ep {
namespace {

constexpr std::size_t kLongestMessage = 4000;

/// Valid UTF-8: what is none becomes the replacement character.
std::string decodable(std::string_view message) {
  const nlohmann::json text = std::string(message.substr(0, kLongestMessage)) + (message.size() > kLongestMessage ? "..." : "");
  return nlohmann::json::parse(text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)).get<std::string>();
}

}  // namespace

OrtStatus* make_status(const Ort& ort, std::string_view message) noexcept {
  try {
    return ort.api->CreateStatus(ORT_FAIL, decodable(message).c_str());
  } catch (const std::exception&) {
    return ort.api->CreateStatus(ORT_FAIL, "out of memory in the hipDNN execution provider");
  }
}

}  // namespace hipdnn_ep
