#include "storage/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "device/error.h"
#include "storage/file_descriptor.h"

namespace hipdnn_rt {
namespace {

[[noreturn]] void fail(const std::string& path, const char* action, int error) {
  throw ProgramError(path + ": cannot " + action + ": " + std::strerror(error));
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail(path, "open", errno);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) fail(path, "read the size", errno);
  if (!S_ISREG(status.st_mode)) throw ProgramError(path + ": not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) throw ProgramError(path + ": the file is empty");
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) fail(path, "map", errno);
  bytes_ = {static_cast<const std::byte*>(address), size};
  // Weights are read once, front to back, when plans are built: let the kernel read ahead. Advice only, so its failure is none of ours.
  madvise(address, size, MADV_WILLNEED);
}

MappedFile::~MappedFile() { munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

void MappedFile::release(std::span<const std::byte> part) const {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = [](const std::byte* byte) { return reinterpret_cast<std::uintptr_t>(byte); };
  const std::uintptr_t first = std::max(address(part.data()), address(bytes_.data()));
  const std::uintptr_t last = std::min(address(part.data() + part.size()), address(bytes_.data() + bytes_.size()));
  const std::uintptr_t begin = (first + page - 1) / page * page, end = last / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace hipdnn_rt
