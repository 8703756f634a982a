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

std::string printable(std::string_view message) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < message.size(); ++i) {
    auto byte = static_cast<unsigned char>(message[i]);
    // U+0080 to U+009F are two bytes, of which the second is the number.
    const bool is_late = byte == 0xC2 && i + 1 < message.size() && (static_cast<unsigned char>(message[i + 1]) & 0xE0) == 0x80;
    if (is_late) byte = static_cast<unsigned char>(message[++i]);
    if (is_late || byte == 0x7F || (byte < 0x20 && byte != '\n' && byte != '\t')) {
      text += "\\x";
      text += kDigits[byte >> 4];
      text += kDigits[byte & 0xF];
    } else {
      text += message[i];
    }
  }
  return text;
}

OrtStatus* make_status(const Ort& ort, std::string_view message) noexcept {
  try {
    return ort.api->CreateStatus(ORT_FAIL, decodable(printable(message)).c_str());
  } catch (const std::exception&) {
    return ort.api->CreateStatus(ORT_FAIL, "out of memory in the hipDNN execution provider");
  }
}

}  // namespace hipdnn_ep
