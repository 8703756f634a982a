#include "support/compiler_error.h"

namespace hipdnn_ep {

CompilerError CompilerError::refused(const std::string& message, std::string kind, std::string detail) {
  CompilerError error(Cause::refused, message);
  error.kind_ = std::move(kind);
  error.detail_ = std::move(detail);
  return error;
}

std::string in_words(std::chrono::milliseconds time) {
  const auto count = time.count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + " s" : std::to_string(count) + " ms";
}

}  // namespace hipdnn_ep
