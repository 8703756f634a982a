// What the operating system says of this process, and folders for a test's files.
#pragma once

#include <cstddef>
#include <filesystem>

namespace ort_tests {

/// Memory that the process has in RAM, after the C library gave back what it can.
std::size_t resident_bytes();

/// Open file descriptors.
std::size_t open_files();

/// A new folder that goes with this object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ort_tests
