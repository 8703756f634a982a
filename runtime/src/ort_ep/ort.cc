#include "ort.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace hipdnn_ep {
namespace {

/// In bytes; ONNX Runtime cuts what is longer than about 4096, wherever that falls.
constexpr std::size_t kLongestMessage = 3500;

bool continues_character(char byte) { return (byte & 0xC0) == 0x80; }

/// Valid UTF-8 of that length at most: what is none becomes the replacement character.
std::string decodable(std::string_view message) {
  const nlohmann::json raw = std::string(message.substr(0, kLongestMessage));
  auto text = nlohmann::json::parse(raw.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)).get<std::string>();
  if (text.size() <= kLongestMessage && message.size() <= kLongestMessage) return text;
  std::size_t end = std::min(text.size(), kLongestMessage);
  while (end > 0 && end < text.size() && continues_character(text[end])) --end;
  return text.substr(0, end) + "...";
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
