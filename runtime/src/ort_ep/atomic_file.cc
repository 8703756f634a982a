#include "atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "hipdnn_rt/error.h"
#include "support/file_descriptor.h"

namespace hipdnn_ep {
namespace {

constexpr mode_t kReadableByAll = 0644;

[[noreturn]] void fail(const std::string& path, const std::string& temporary, int error) {
  if (!temporary.empty()) unlink(temporary.c_str());
  throw hipdnn_rt::Error(path + ": cannot write: " + std::strerror(error) + "; free some space or choose another folder");
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
  if (fchmod(file.get(), kReadableByAll) != 0) fail(path, temporary, errno);
  if (std::rename(temporary.c_str(), path.c_str()) != 0) fail(path, temporary, errno);
}

}  // namespace hipdnn_ep
