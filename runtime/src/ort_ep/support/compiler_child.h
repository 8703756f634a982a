// One Python process that answers compiler requests over a socket.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "storage/file_descriptor.h"
#include "support/child_process.h"
#include "support/compiler_error.h"
#include "support/memory_file.h"

namespace hipdnn_ep {

/// A running `python -P -m hipdnn_mlir.service.server`. A message either way is a length (4 bytes, little-endian) and that much JSON text; file
/// descriptors travel with the first bytes of a request. Owns process and socket: the end of life closes the socket, at which the compiler
/// ends by itself, and kills one that does not. One thread at a time.
class CompilerChild {
 public:
  /// Starts the interpreter at the path `python`. `package_root`, where not empty, is where it looks for modules first.
  /// Throws hipdnn_rt::Error where the system refuses.
  CompilerChild(const std::string& python, const std::string& package_root);
  ~CompilerChild();
  CompilerChild(const CompilerChild&) = delete;
  CompilerChild& operator=(const CompilerChild&) = delete;

  bool is_alive() { return is_in_step_ && socket_.is_open() && !process_.ending(); }

  /// Sends a request, which is JSON text, and waits for the reply, as long as `limit`: an object with "result" or an object "error".
  /// The descriptors stay the caller's. Throws CompilerError: `refused` for a request that cannot be sent, `crashed` or `timed_out` with the
  /// process gone.
  nlohmann::json exchange(std::string_view request, std::span<const int> descriptors, std::chrono::milliseconds limit);

 private:
  struct Deadline {
    std::chrono::milliseconds limit;
    Clock::time_point end;
  };

  void send(std::span<const std::byte> message, std::span<const int> descriptors, const Deadline& deadline);
  std::string receive_text(const Deadline& deadline);
  void receive(std::span<char> bytes, const Deadline& deadline);
  /// Returns when the socket is ready for `events`.
  void wait_for(short events, const Deadline& deadline);
  /// Ends the process and throws; `ending` in words, or how the process ended by itself.
  [[noreturn]] void fail(CompilerError::Cause cause, const std::string& ending, const std::string& remedy);
  [[noreturn]] void fail_dead();
  [[noreturn]] void fail_confused(const std::string& reply);
  /// The last characters the process printed since the last reply.
  std::string last_output() const;

  std::string python_;
  /// False from the start of a request to the end of its reply: what was left half done by an exception cannot be gone on with.
  bool is_in_step_ = true;
  hipdnn_rt::FileDescriptor socket_;
  MemoryFile output_;
  ChildProcess process_;
};

}  // namespace hipdnn_ep
