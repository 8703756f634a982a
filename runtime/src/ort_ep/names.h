// What the execution provider calls itself.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace hipdnn_ep {

inline constexpr const char* kEpName = "HipDNNExecutionProvider";
inline constexpr const char* kVendor = "AMD";

/// What ONNX Runtime puts before a provider's own options among the session's entries.
inline std::string option_prefix() {
  std::string name = kEpName;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return "ep." + name + ".";
}

}  // namespace hipdnn_ep
