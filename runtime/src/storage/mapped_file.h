// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace hipdnn_rt {

/// Owns the mapping. Immutable, safe to share. Pages are private, but a file truncated by someone while mapped is a fault (as with any map):
/// replace program files by renaming, as the writer does.
class MappedFile {
 public:
  /// Throws ProgramError where the file cannot be opened, is no regular file, or cannot be mapped.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  /// Have the whole pages of a part count as this process's memory no longer; who reads them again gets them from the file. Other memory stays.
  void release(std::span<const std::byte> part) const;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace hipdnn_rt
