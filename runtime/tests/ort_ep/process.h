// What the operating system says of this process, and folders for a test's files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>

#include "../check.h"

namespace ort_tests {

/// Throws check::Failure where the process grows with every turn of `work`: by more than `heap_bytes` allocated and not freed, or by open
/// files. Caches may fill in some turns; of a leak none is free.
void check_settles(std::size_t heap_bytes, const std::function<void()>& work, const check::Location& at = check::Location::current());

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
