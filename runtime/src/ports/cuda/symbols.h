// Functions of a library that was opened at run time.
#pragma once

#include <dlfcn.h>

#include <string>

namespace hipdnn_cuda {

/// A library as it was opened, once.
template <class Functions>
struct Opened {
  Functions functions;
  std::string version = "none";
  /// Why it cannot be used; empty where it can.
  std::string failure;
};

/// Find a function. `missing` is the first that was not found.
template <class Function>
void load(void* library, const char* symbol, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (function == nullptr && missing.empty()) missing = symbol;
}

}  // namespace hipdnn_cuda
