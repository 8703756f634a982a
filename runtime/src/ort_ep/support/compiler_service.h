// Answers compiler requests: finds a Python with hipdnn_mlir, keeps it running, and starts it again when it died.
#pragma once

#include <atomic>
#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "support/compiler_error.h"
#include "support/interpreter.h"

namespace hipdnn_ep {

enum class CompilerMode {
  automatic,   ///< `subprocess` where that works, else `none`.
  inprocess,   ///< The interpreter that runs in this process. A crash of the compiler is then one of this process.
  subprocess,  ///< A Python process of its own.
  none         ///< No compiler: every request is refused.
};

struct CompilerOptions {
  CompilerMode mode = CompilerMode::automatic;
  /// Interpreter for `subprocess`; empty for the one find_interpreter finds.
  std::string python;
  /// How long a request may wait for earlier ones to end, and then, from its start, for its answer. No limit in process.
  std::chrono::milliseconds timeout{600'000};
};

/// What answers requests with some options.
struct Availability {
  /// `subprocess`, `inprocess`, or `none`, never `automatic`.
  CompilerMode mode = CompilerMode::none;
  /// "subprocess /usr/bin/python3", "inprocess", or why there is nothing.
  std::string description;

  bool is_available() const { return mode != CompilerMode::none; }
};

/// Version of this library; a compiler must have the same.
std::string_view library_version();

/// One per process is enough. All functions may be called from several threads at once; requests to the same interpreter take turns.
/// A process forked from the owner's starts compilers of its own and leaves the owner's alone. Ends its compilers at the end of life, when
/// no request may be under way. Callers hold no lock that a Python thread of this process might wait for.
class CompilerService {
 public:
  /// `package_root` is the folder from which compilers import hipdnn_mlir first; may be empty.
  explicit CompilerService(std::string package_root = default_package_root());
  ~CompilerService();
  CompilerService(const CompilerService&) = delete;
  CompilerService& operator=(const CompilerService&) = delete;

  /// Finds out by asking the compiler who it is, which takes as long as Python takes to start. Remembered, unless the reason for having
  /// none may pass (a crash, a time limit, lack of memory). Throws nothing but std::bad_alloc.
  Availability availability(const CompilerOptions& options);

  /// The member "result" of the compiler's reply to `request`, which comes with descriptors that stay the caller's.
  /// Throws CompilerError; hipdnn_rt::Error where the system refuses to start a process.
  nlohmann::json request(const CompilerOptions& options, const nlohmann::json& request, std::span<const int> descriptors);

 private:
  struct State;

  /// The state of this process, which is new after a fork.
  State& state();
  Availability ask(const CompilerOptions& options);

  std::string package_root_;
  std::atomic<State*> state_;
};

}  // namespace hipdnn_ep
