// The Python interpreter that already runs in this process, reached without linking to it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hipdnn_ep {

struct PythonApi;

/// A view of the process's interpreter; copyable. Safe to use from several threads: every call takes the interpreter's lock (GIL), so the
/// caller must hold no lock that a thread of Python's might wait for.
class EmbeddedPython {
 public:
  /// Nothing where no interpreter runs in this process, or its symbols are not visible.
  static std::optional<EmbeddedPython> find();

  /// sys.executable; empty where Python does not know it.
  std::string executable() const;

  /// hipdnn_mlir.service.server.answer(request, descriptors), with `package_root` added to the end of sys.path where it is not there and not empty.
  /// Throws CompilerError with the text of a Python exception.
  std::string answer(const std::string& package_root, std::string_view request, std::span<const int> descriptors) const;

 private:
  explicit EmbeddedPython(const PythonApi& api) : api_(&api) {}

  const PythonApi* api_;
};

}  // namespace hipdnn_ep
