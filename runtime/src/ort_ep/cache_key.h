// Under which key the cache keeps what was made of a model. docs/onnxruntime.md says to users what a key is made from.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace hipdnn_ep {

/// What a placement or a program depends on beside the model and the sizes that it is for.
struct KeyParts {
  /// Version and content of the provider's library.
  std::string provider;
  /// Version of the hipDNN library that programs run on.
  std::string library;
  /// The instruction sets of this machine's CPU where the target is the CPU, else empty.
  std::string cpu;
  std::string target;
  std::string precision;
};

KeyParts make_key_parts(const std::string& target, const std::string& precision, const std::string& library);
nlohmann::json to_json(const KeyParts& parts);

/// SHA-256, in hexadecimal, of these texts in this order, each followed by a zero byte: action, the parts as declared, content, detail.
std::string make_key(const std::string& action, const KeyParts& parts, const std::string& content, const std::string& detail);

}  // namespace hipdnn_ep
