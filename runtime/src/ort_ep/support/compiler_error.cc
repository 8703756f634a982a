#include "support/compiler_error.h"

namespace hipdnn_ep {

CompilerError CompilerError::refused(const std::string& message, std::string kind, std::string detail) {
  CompilerError error(Cause::refused, message);
  error.kind_ = std::move(kind);
  error.detail_ = std::move(detail);
  return error;
}

}  // namespace hipdnn_ep
