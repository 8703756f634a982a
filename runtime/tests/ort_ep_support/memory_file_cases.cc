// Memory files: shared bytes, sizes, ownership, refusals.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

#include "cases.h"
#include "device/error.h"
#include "support/memory_file.h"

namespace support_tests {
namespace {

using hipdnn_ep::Mapping;
using hipdnn_ep::MemoryFile;

constexpr std::size_t kBytes = 10'000;

template <typename Action>
std::string error_of(const Action& action, const check::Location& at = check::Location::current()) {
  try {
    action();
  } catch (const hipdnn_rt::Error& error) {
    return error.what();
  }
  throw check::Failure("no Error", at);
}

void check_shared_bytes(MemoryFile file) {
  check::equal(file.size(), std::uint64_t{0});
  check::that(file.map(MemoryFile::Access::read_write).bytes().empty(), "an empty file has bytes");
  file.set_size(kBytes);
  check::equal(file.size(), std::uint64_t{kBytes});
  check::that((fcntl(file.fd(), F_GETFD) & FD_CLOEXEC) != 0, "a program started now would inherit the file");
  const Mapping written = file.map(MemoryFile::Access::read_write);
  const Mapping seen = file.map(MemoryFile::Access::read_only);
  check::equal(seen.bytes().size(), kBytes);
  std::memcpy(written.bytes().data() + kBytes - 5, "bytes", 5);
  check::that(std::memcmp(seen.bytes().data() + kBytes - 5, "bytes", 5) == 0, "the mappings do not show the same file");
  std::string read(5, ' ');
  check::equal(pread(file.fd(), read.data(), read.size(), kBytes - 5), ssize_t{5});
  check::equal(read, std::string("bytes"));
}

void test_bytes_shared_when_in_memory() { check_shared_bytes(MemoryFile("a file in memory")); }

void test_bytes_shared_when_on_disk() {
  const TemporaryFolder folder;
  check_shared_bytes(MemoryFile::on_disk("a file on disk", folder.path().string()));
  MemoryFile file = MemoryFile::on_disk("a file on disk", folder.path().string());
  check::that(std::filesystem::is_empty(folder.path()), "the file has a name");
}

void test_descriptor_and_pages_released_when_owners_end() {
  const std::size_t before = open_descriptors();
  Mapping kept;
  {
    MemoryFile file("short-lived");
    file.set_size(kBytes);
    Mapping first = file.map(MemoryFile::Access::read_write);
    first.bytes()[0] = std::byte{42};
    MemoryFile moved = std::move(file);
    kept = moved.map(MemoryFile::Access::read_only);
    kept = std::move(first);
    check::that(first.bytes().empty(), "a mapping moved from still has pages");
  }
  check::equal(open_descriptors(), before, "descriptors after the file's end");
  check::equal(static_cast<int>(kept.bytes()[0]), 42, "the mapping after the file's end");
}

void test_size_fixed_when_sealed() {
  MemoryFile file("sealed");
  file.set_size(kBytes);
  const Mapping mapping = file.map(MemoryFile::Access::read_write);
  file.seal_size();
  check::contains(error_of([&] { file.set_size(1); }), "sealed: cannot set the size to 1 bytes: Operation not permitted");
  check::that(ftruncate(file.fd(), kBytes + 1) != 0, "a sealed file grew");
  mapping.bytes()[kBytes - 1] = std::byte{1};
  check::equal(file.size(), std::uint64_t{kBytes});
}

void test_refused_when_there_is_no_room() {
  const TemporaryFolder folder;
  check::contains(error_of([&] { MemoryFile::on_disk("model", (folder.path() / "none").string()); }),
                  "model: cannot create a temporary file in " + folder.path().string());
  MemoryFile file("model");
  check::contains(error_of([&] { file.set_size(~std::uint64_t{0}); }), "model: cannot set the size to 18446744073709551615 bytes");
  // A limit on file sizes stands in for a full disk: both refuse the bytes when the size is set, not when they are written. No signal comes.
  check::equal(wait_for(fork_to([&] {
                 const rlimit limit{4096, 4096};
                 check::equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
                 check::contains(error_of([&] { file.set_size(1 << 20); }), "model: cannot set the size to 1048576 bytes: File too large");
                 MemoryFile on_disk = MemoryFile::on_disk("model", folder.path().string());
                 check::contains(error_of([&] { on_disk.set_size(1 << 20); }), "model: cannot set the size to 1048576 bytes: File too large");
               })),
               0);
}

}  // namespace

void add_memory_file_cases(check::Suite& suite) {
  suite.add("memory file: bytes shared when in memory", test_bytes_shared_when_in_memory);
  suite.add("memory file: bytes shared when on disk", test_bytes_shared_when_on_disk);
  suite.add("memory file: descriptor and pages released when owners end", test_descriptor_and_pages_released_when_owners_end);
  suite.add("memory file: size fixed when sealed", test_size_fixed_when_sealed);
  suite.add("memory file: refused when there is no room", test_refused_when_there_is_no_room);
}

}  // namespace support_tests
