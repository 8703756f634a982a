#include "atomic_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "device/error.h"
#include "storage/partial_file.h"

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

}  // namespace

void write_atomically(const std::string& path, std::span<const std::byte> bytes) {
  hipdnn_rt::PartialFile file(path + ".");
  file.write(bytes);
  file.set_mode(usual_mode());
  file.publish(path);
  if (const int error = file.error(); error != 0) {
    throw hipdnn_rt::Error(path + ": cannot write: " + std::strerror(error) +
                           (error == ENOSPC || error == EDQUOT ? "; free some space" : "; choose another folder"));
  }
}

}  // namespace hipdnn_ep
