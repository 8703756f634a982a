#include "process.h"

#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>

namespace ort_tests {

namespace {

constexpr int kTurns = 6;
/// Pages that are in use for a few bytes only come on top of what is allocated.
constexpr std::size_t kScatteredBytes = std::size_t{1} << 20;

/// What the process takes of the machine at a moment when no other thread works.
struct Footprint {
  /// In RAM, after the C library gave back what it can.
  std::size_t resident_bytes;
  /// Allocated from the C library and not freed.
  std::size_t heap_bytes;
  std::size_t open_files;
};

Footprint footprint() {
  malloc_trim(0);
  std::size_t total_pages = 0;
  std::size_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  const struct mallinfo2 heap = mallinfo2();
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return {resident_pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), heap.uordblks + heap.hblkhd,
          static_cast<std::size_t>(std::distance(begin(files), end(files)))};
}

/// What grew, empty where nothing did.
std::string growth(const Footprint& before, const Footprint& after, std::size_t heap_bytes) {
  const auto describe = [](const char* what, std::size_t from, std::size_t to, std::size_t limit) {
    if (to <= from + limit) return std::string();
    return std::string(what) + " by " + std::to_string(to - from) + ", expected at most " + std::to_string(limit) + "; ";
  };
  std::string text = describe("open files", before.open_files, after.open_files, 0);
  if (!kHasPlainMemory) return text;
  text += describe("allocated bytes", before.heap_bytes, after.heap_bytes, heap_bytes);
  text += describe("resident bytes", before.resident_bytes, after.resident_bytes, heap_bytes + kScatteredBytes);
  return text;
}

}  // namespace

void check_settles(std::size_t heap_bytes, const std::function<void()>& work, const check::Location& at) {
  work();
  std::string grown;
  for (int turn = 0; turn < kTurns; ++turn) {
    const Footprint before = footprint();
    work();
    grown = growth(before, footprint(), heap_bytes);
    if (grown.empty()) return;
  }
  throw check::Failure("the process grows without end: in the last of " + std::to_string(kTurns) + " turns " + grown, at);
}

}  // namespace ort_tests
