// Files that appear complete or not at all: written under a name of their own, then renamed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>

#include "storage/file_descriptor.h"

namespace hipdnn_rt {

/// A file under a name that no other writer has, deleted at the end of life unless published. Nothing throws: after a failure everything
/// else does nothing, and `error` says why. One thread at a time.
class PartialFile {
 public:
  /// Its name is `prefix` and six letters; the file is private until published.
  explicit PartialFile(const std::string& prefix);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void set_mode(mode_t mode);
  /// Take the name `target`, in place of what has it.
  void publish(const std::string& target);

  int fd() const { return file_.get(); }
  /// errno of the first failure, 0 where there was none.
  int error() const { return error_; }

 private:
  std::string path_;
  FileDescriptor file_;
  int error_ = 0;
  bool is_published_ = false;
};

}  // namespace hipdnn_rt
