// Signals that arrive while the runtime works: Ctrl-C ends a long run.
#pragma once

#include <nanobind/nanobind.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/clock.h"

namespace hipdnn_rt::bindings {

/// Lets Python's handlers of signals run now and then amid work without the GIL. They belong to the main thread: others are left alone, also
/// because one that asks for the GIL at the interpreter's end does not return.
class Signals {
 public:
  /// Without the GIL. Throws what a handler raises, KeyboardInterrupt by default.
  void check() {
    if (Clock::now() < next_) return;
    next_ = Clock::now() + kInterval;
    if (syscall(SYS_gettid) != getpid()) return;
    const nanobind::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  }

 private:
  static constexpr std::chrono::milliseconds kInterval{50};
  Clock::time_point next_ = Clock::now() + kInterval;
};

}  // namespace hipdnn_rt::bindings
