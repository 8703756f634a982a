// Lines of the runtime and of the libraries behind it, until Python asks for them.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "hipdnn_backend.h"

namespace hipdnn_rt::bindings {

/// A line and who says it: "runtime", or "hipdnn" for the hipDNN library.
struct LogLine {
  hipdnnSeverity_t severity;
  const char* source;
  std::string text;
};

/// Lines wait here and do not call Python: whoever logs may hold a lock of a library that a thread with Python's own lock is waiting for.
/// Any thread.
class LogQueue {
 public:
  /// The process's queue: a library's callback is the process's too, and may come until its end.
  static LogQueue& instance();

  /// While one lives, what its thread logs is dropped: the answers to questions are no news.
  class Mute {
   public:
    Mute();
    ~Mute();
    Mute(const Mute&) = delete;
    Mute& operator=(const Mute&) = delete;
  };

  /// Drops the line where too many wait already.
  void add(hipdnnSeverity_t severity, const char* source, std::string text) noexcept;
  std::vector<LogLine> take();

 private:
  static constexpr std::size_t kMost = 4096;

  std::mutex mutex_;
  std::deque<LogLine> lines_;
};

}  // namespace hipdnn_rt::bindings
