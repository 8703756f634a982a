#include "support/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <system_error>
#include <utility>

#include "device/error.h"

namespace hipdnn_ep {
namespace {

std::string reason_of(int error) { return std::system_category().message(error); }

bool is_out_of_resources(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

}  // namespace

Mapping::~Mapping() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

Mapping::Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  // `previous` unmaps what was mapped before.
  const Mapping previous(std::exchange(bytes_, std::exchange(other.bytes_, {})));
  return *this;
}

MemoryFile::MemoryFile(std::string name, hipdnn_rt::FileDescriptor file, bool is_on_disk)
    : name_(std::move(name)), file_(std::move(file)), is_on_disk_(is_on_disk) {}

MemoryFile::MemoryFile(const std::string& name) : name_(name), file_(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (file_.is_open()) return;
  if (is_out_of_resources(errno)) fail("create a memory file", errno);
  // Old kernels and some sandboxes have no memory files.
  *this = on_disk(name, temporary_directory());
}

MemoryFile MemoryFile::on_disk(const std::string& name, const std::string& directory) {
  std::string path = directory + "/hipdnn-XXXXXX";
  MemoryFile file(name, hipdnn_rt::FileDescriptor(mkostemp(path.data(), O_CLOEXEC)), true);
  if (!file.file_.is_open()) file.fail("create a temporary file in " + directory, errno);
  unlink(path.c_str());
  return file;
}

void MemoryFile::fail(const std::string& action, int error) const {
  throw hipdnn_rt::Error(name_ + ": cannot " + action + ": " + reason_of(error));
}

std::uint64_t MemoryFile::size() const {
  struct stat status {};
  if (fstat(fd(), &status) != 0) fail("read the size", errno);
  return static_cast<std::uint64_t>(status.st_size);
}

void MemoryFile::set_size(std::uint64_t bytes) {
  const std::string action = "set the size to " + std::to_string(bytes) + " bytes";
  // The system's own refusal comes with a signal that ends a host which does not ignore it.
  if (bytes > largest()) fail(action, EFBIG);
  if (ftruncate(fd(), static_cast<off_t>(bytes)) != 0) fail(action, errno);
  if (!is_on_disk_ || bytes == 0) return;
  // A full disk must show here: found out later, at a write through a mapping, it would be a fault.
  if (const int error = posix_fallocate(fd(), 0, static_cast<off_t>(bytes)); error != 0) fail(action, error);
}

std::uint64_t MemoryFile::largest() {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMost;
  return std::min(kMost, static_cast<std::uint64_t>(limit.rlim_cur));
}

void MemoryFile::seal_size() {
  if (is_on_disk_) return;
  if (fcntl(fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) fail("seal the size", errno);
}

Mapping MemoryFile::map(Access access) const {
  const std::uint64_t bytes = size();
  if (bytes == 0) return {};
  const int protection = access == Access::read_write ? PROT_READ | PROT_WRITE : PROT_READ;
  void* address = mmap(nullptr, bytes, protection, MAP_SHARED, fd(), 0);
  if (address == MAP_FAILED) fail("map " + std::to_string(bytes) + " bytes", errno);
  return Mapping({static_cast<std::byte*>(address), bytes});
}

std::string temporary_directory() {
  const char* directory = std::getenv("TMPDIR");
  return directory != nullptr && *directory != '\0' ? directory : "/tmp";
}

}  // namespace hipdnn_ep
