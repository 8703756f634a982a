// A program that this process starts, watches and ends.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace hipdnn_ep {

using Clock = std::chrono::steady_clock;

/// Owns the child: its end of life kills and reaps it. Move-only; one thread at a time. In a process forked from the one that started the
/// child the object is inert: nothing there waits for or kills the child.
class ChildProcess {
 public:
  /// What to start and with which descriptors. The child gets these and no other.
  struct Command {
    /// The program's path, then its arguments.
    std::vector<std::string> arguments;
    /// NAME=value
    std::vector<std::string> environment;
    /// Becomes standard output and standard error; standard input is empty.
    int output = -1;
    /// Becomes descriptor kChannel.
    int channel = -1;
  };
  static constexpr int kChannel = 3;

  /// The child leads a process group of its own, so that an interrupt typed at the terminal does not reach it, and has default signal
  /// handling. Throws hipdnn_rt::Error where it cannot be started.
  static ChildProcess start(const Command& command);
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;

  pid_t pid() const { return pid_; }
  /// False in a process forked from the one that started the child.
  bool is_own() const { return parent_ == getpid(); }
  /// How it ended, in words ("died of SIGSEGV", "ended with status 1"), or nothing while it runs. Processes it started end with it.
  std::optional<std::string> ending();
  /// Waits for the end until `deadline`, then kills it with all of its process group. Returns how it ended.
  std::string stop(Clock::time_point deadline);

 private:
  explicit ChildProcess(pid_t pid);
  /// Ends what is left of the process group and takes the child's status, in words. Waits for the child.
  std::string reap();

  pid_t pid_ = -1;
  pid_t parent_ = -1;
  std::optional<std::string> ending_;
};

}  // namespace hipdnn_ep
