// A file descriptor with an owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace hipdnn_rt {

/// Closes the descriptor it owns; move-only. One thread at a time.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int raw) : raw_(raw) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : raw_(std::exchange(other.raw_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      reset();
      raw_ = std::exchange(other.raw_, -1);
    }
    return *this;
  }

  int get() const { return raw_; }
  bool is_open() const { return raw_ >= 0; }
  void reset() {
    if (const int raw = std::exchange(raw_, -1); raw >= 0) close(raw);
  }

 private:
  int raw_ = -1;
};

}  // namespace hipdnn_rt
