// Which Python would run the compiler.
#pragma once

#include <string>

namespace hipdnn_ep {

/// The folder that contains the package hipdnn_mlir this code was installed with, where that package has the compiler's server; else empty.
/// In an installed package this code is linked into `<folder>/hipdnn_mlir_runtime/lib/<library>`.
std::string default_package_root();

/// An interpreter, or the reason why there is none.
struct Interpreter {
  std::string path;
  std::string reason;
};

/// The first that applies of: `wanted` (a path, or a name to be looked up on PATH), the interpreter this process runs in (`host`, which may be
/// empty; only where its file name says that it is Python, since an application that embeds Python names itself), that of the environment
/// whose site-packages is `package_root`, and python3 on PATH. Nothing is started.
Interpreter find_interpreter(const std::string& wanted, const std::string& host, const std::string& package_root);

}  // namespace hipdnn_ep
