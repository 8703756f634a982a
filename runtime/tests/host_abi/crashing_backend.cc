// The host's library with functions that end the process: what the program makes of that is tested with it.
#include <csignal>
#include <cstdlib>

#include "hipdnn_backend.h"

namespace {

/// With the default action: a sanitizer's handler would turn the signal into an exit status.
[[noreturn]] void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  std::abort();
}

/// At exit, where the environment asks for it.
struct CrashAtExit {
  CrashAtExit() = default;
  ~CrashAtExit() {
    if (std::getenv("CRASH_AT_EXIT") != nullptr) end_by(SIGABRT);
  }
  CrashAtExit(const CrashAtExit&) = delete;
  CrashAtExit& operator=(const CrashAtExit&) = delete;
} crash_at_exit;

}  // namespace

extern "C" {

[[gnu::visibility("default")]] hipdnnStatus_t hipdnnSetStream(hipdnnHandle_t, hipStream_t) { end_by(SIGSEGV); }

[[gnu::visibility("default")]] const char* hipdnnGetErrorString(hipdnnStatus_t) { std::exit(3); }

}  // extern "C"
