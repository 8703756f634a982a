#include "atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "hipdnn_rt/error.h"
#include "support/file_descriptor.h"

namespace hipdnn_ep {
namespace {

/// What a file created by open would get. The process's umask can only be read by setting it, so it comes from /proc; private where it cannot.
mode_t usual_mode() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Umask:")) return static_cast<mode_t>(0666 & ~std::stoul(line.substr(sizeof("Umask:")), nullptr, 8));
  }
  return 0600;
}

[[noreturn]] void fail(const std::string& path, const std::string& temporary, int error) {
  if (!temporary.empty()) unlink(temporary.c_str());
  throw hipdnn_rt::Error(path + ": cannot write: " + std::strerror(error) + (error == ENOSPC || error == EDQUOT ? "; free some space" : "; choose another folder"));
}

}  // namespace

void write_atomically(const std::string& path, std::span<const std::byte> bytes) {
  std::string temporary = path + ".XXXXXX";
  FileDescriptor file(mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.is_open()) fail(path, "", errno);
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, temporary, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  if (fchmod(file.get(), usual_mode()) != 0) fail(path, temporary, errno);
  if (std::rename(temporary.c_str(), path.c_str()) != 0) fail(path, temporary, errno);
}

}  // namespace hipdnn_ep
