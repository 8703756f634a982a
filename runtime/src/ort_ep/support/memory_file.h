// Files that live in memory and have no name: how large data travels between this process and the compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "storage/file_descriptor.h"

namespace hipdnn_ep {

/// Part of the address space that shows a file's bytes; unmapped at the end of life. Move-only. It outlives the file's descriptor.
class Mapping {
 public:
  Mapping() = default;
  /// Takes over pages that mmap returned.
  explicit Mapping(std::span<std::byte> pages) : bytes_(pages) {}
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;

  /// Writing through the span of a read-only mapping is a fault.
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

/// An anonymous file, closed at the end of life and never inherited by programs this process starts. Move-only; one thread at a time.
/// Whoever is given the descriptor shares the bytes. Every member function throws hipdnn_rt::Error where the system refuses.
class MemoryFile {
 public:
  enum class Access { read_only, read_write };

  /// An empty file. `name` appears in listings of open files and in messages. Where the system has no memory files it is a temporary file.
  explicit MemoryFile(const std::string& name);
  /// An empty file on disk, unlinked already, in `directory`.
  static MemoryFile on_disk(const std::string& name, const std::string& directory);

  /// Read and write position and size are those of the file: use the descriptor while this object lives.
  int fd() const { return file_.get(); }
  /// Size now; a process that shares the file may have changed it.
  std::uint64_t size() const;
  void set_size(std::uint64_t bytes);
  /// What the system lets a file of this process have (`ulimit -f`).
  static std::uint64_t largest();
  /// From now on nobody can change the size, so that a mapping cannot lose its pages. Without effect on a file on disk.
  void seal_size();
  /// The whole file as it is now; empty for an empty file.
  Mapping map(Access access) const;

 private:
  MemoryFile(std::string name, hipdnn_rt::FileDescriptor file, bool is_on_disk);
  [[noreturn]] void fail(const std::string& action, int error) const;

  std::string name_;
  hipdnn_rt::FileDescriptor file_;
  bool is_on_disk_ = false;
};

/// The folder for temporary files: TMPDIR, or /tmp.
std::string temporary_directory();

}  // namespace hipdnn_ep
