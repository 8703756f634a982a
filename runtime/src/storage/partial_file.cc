#include "storage/partial_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace hipdnn_rt {

PartialFile::PartialFile(const std::string& prefix) : path_(prefix + "XXXXXX") {  // mkostemp fills in the end
  file_ = FileDescriptor(mkostemp(path_.data(), O_CLOEXEC));
  if (!file_.is_open()) error_ = errno;
}

PartialFile::~PartialFile() {
  if (file_.is_open() && !is_published_) unlink(path_.c_str());
}

void PartialFile::write(std::span<const std::byte> bytes) {
  while (error_ == 0 && !bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
}

void PartialFile::set_mode(mode_t mode) {
  if (error_ == 0 && fchmod(file_.get(), mode) != 0) error_ = errno;
}

void PartialFile::publish(const std::string& target) {
  if (error_ == 0 && std::rename(path_.c_str(), target.c_str()) != 0) error_ = errno;
  is_published_ = error_ == 0;
}

}  // namespace hipdnn_rt
