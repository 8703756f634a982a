// The disk cache: what is stored is found whole, the bound holds, and nothing that goes wrong is the caller's problem.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <vector>

#include "cases.h"
#include "device/error.h"
#include "storage/disk_cache.h"

namespace support_tests {
namespace {

namespace fs = std::filesystem;
using hipdnn_rt::DiskCache;

constexpr std::uint64_t kRoomy = 1U << 30;
constexpr uid_t kNobody = 65534;

std::string key(int number) {
  std::array<char, 65> digits{};
  std::snprintf(digits.data(), digits.size(), "%064x", static_cast<unsigned>(number));
  return digits.data();
}

std::string content(int number, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(static_cast<std::size_t>(number) * 31 + i / 7);
  return text;
}

std::string store(const DiskCache& cache, int number, const std::string& text) {
  return cache.store(key(number), "bin", std::as_bytes(std::span(text)));
}

std::vector<fs::path> files_in(const fs::path& directory) {
  return {fs::directory_iterator(directory), fs::directory_iterator()};
}

std::uintmax_t total_bytes(const fs::path& directory) {
  std::uintmax_t total = 0;
  for (const fs::path& file : files_in(directory)) total += fs::file_size(file);
  return total;
}

void set_age(const fs::path& file, std::chrono::seconds age) { fs::last_write_time(file, fs::file_time_type::clock::now() - age); }

void test_found_when_stored() {
  const TemporaryFolder folder;
  const fs::path directory = folder.path() / "a" / "b";
  const DiskCache cache(directory, kRoomy);
  check::that(!cache.find(key(1), "bin"), "found before it was stored");
  check::equal(store(cache, 1, "one"), std::string());
  const auto found = cache.find(key(1), "bin");
  check::that(found.has_value(), "not found");
  check::equal(*found, (directory / (key(1) + ".bin")).string());
  check::equal(read_file(*found), std::string("one"));
  check::that(!cache.find(key(1), "json"), "found under another suffix");
  check::that(!cache.find(key(2), "bin"), "found under another key");
  struct stat status {};
  stat(found->c_str(), &status);
  check::equal(status.st_mode & 0777U, 0600U, "the entry's permissions");
  for (const fs::path& made : {directory, directory.parent_path()}) {
    stat(made.c_str(), &status);
    check::equal(status.st_mode & 0777U, 0700U, "the permissions of " + made.string());
  }
  check::equal(store(cache, 1, ""), std::string());
  check::equal(read_file(*cache.find(key(1), "bin")), std::string(), "the entry stored again");
  cache.remove(key(1), "bin");
  cache.remove(key(1), "bin");
  check::that(!cache.find(key(1), "bin"), "found after it was removed");
  check::that(fs::is_empty(directory), "something is left in the directory");
}

void test_entries_listed_from_the_one_used_last() {
  const TemporaryFolder folder;
  const DiskCache cache(folder.path() / "cache", kRoomy);
  check::that(cache.newest("bin", 9).empty(), "a folder that is not there");
  for (int i = 0; i < 4; ++i) check::equal(store(cache, i, "x"), std::string());
  write_file(folder.path() / "cache" / (key(7) + ".json"), "another suffix");
  write_file(folder.path() / "cache" / "notes.bin", "no entry");
  cache.find(key(1), "bin");
  check::equal(cache.newest("bin", 3), std::vector<std::string>{key(1), key(3), key(2)});
  check::equal(cache.newest("json", 3), std::vector<std::string>{key(7)});
  fs::permissions(folder.path() / "cache", fs::perms::others_write, fs::perm_options::add);
  check::that(cache.newest("bin", 9).empty(), "a folder that everyone may write to");
}

void test_refused_when_the_key_is_none() {
  const TemporaryFolder folder;
  const DiskCache cache(folder.path(), kRoomy);
  const auto refuse = [&](const std::string& bad_key, const std::string& bad_suffix) {
    try {
      cache.find(bad_key, bad_suffix);
    } catch (const hipdnn_rt::Error&) {
      return;
    }
    throw check::Failure(std::string(bad_key).append(".").append(bad_suffix) + " is taken for an entry", check::Location::current());
  };
  refuse("", "bin");
  refuse("../" + std::string(61, '0'), "bin");
  refuse(key(1) + "0", "bin");
  refuse(std::string(64, 'B'), "bin");
  refuse(key(1), "");
  refuse(key(1), "../bin");
  refuse(key(1), std::string("b\0n", 3));
}

void test_least_recently_used_evicted_when_over_the_bound() {
  const TemporaryFolder folder;
  const DiskCache cache(folder.path(), 1000);
  write_file(folder.path() / "notes.txt", std::string(5000, 'n'));
  write_file(folder.path() / (key(9) + ".BAK"), std::string(5000, 'n'));
  for (int i = 0; i < 4; ++i) check::equal(store(cache, i, content(i, 250)), std::string());
  // The order of use is now 1, 3, 2, 0.
  for (const int used : {3, 2, 0}) check::that(cache.find(key(used), "bin").has_value(), "not found while within the bound");
  check::equal(store(cache, 4, content(4, 400)), std::string());
  const auto is_there = [&](int number) { return fs::exists(folder.path() / (key(number) + ".bin")); };
  check::that(!is_there(1) && !is_there(3), "the least recently used are still there");
  check::that(is_there(2) && is_there(0) && is_there(4), "an entry was evicted without need");
  check::equal(store(cache, 5, content(5, 1000)), std::string());
  check::that(is_there(5) && !is_there(2) && !is_there(0) && !is_there(4), "the newest entry alone fills the bound");
  // A clock that was wrong once must not cost the entry just written.
  set_age(folder.path() / (key(5) + ".bin"), -std::chrono::hours(24));
  check::equal(store(cache, 6, content(6, 10)), std::string());
  check::that(is_there(6) && !is_there(5), "the newest entry was evicted");
  check::that(fs::exists(folder.path() / "notes.txt") && fs::exists(folder.path() / (key(9) + ".BAK")), "a file of someone else's is gone");
}

void test_not_stored_when_larger_than_the_bound() {
  const TemporaryFolder folder;
  const DiskCache cache(folder.path(), 1000);
  store(cache, 1, content(1, 900));
  check::contains(store(cache, 2, content(2, 1001)), "an entry of 1001 bytes exceeds the cache's bound of 1000 bytes");
  check::that(!cache.find(key(2), "bin") && cache.find(key(1), "bin"), "the entry too large took the other's place");
}

void test_nothing_left_when_the_disk_is_full() {
  const TemporaryFolder folder;
  const DiskCache cache(folder.path(), kRoomy);
  store(cache, 1, "kept");
  // A limit on file sizes fails a write half way, as a full disk does.
  check::equal(wait_for(fork_to([&] {
                 std::signal(SIGXFSZ, SIG_IGN);
                 const rlimit limit{4096, 4096};
                 check::equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
                 check::contains(store(cache, 2, content(2, 100'000)), folder.path().string() + ": cannot store a cache entry: File too large");
                 check::equal(store(cache, 3, content(3, 4096)), std::string(), "a small entry afterwards");
               })),
               0);
  check::equal(files_in(folder.path()).size(), std::size_t{2}, "files in the cache");
  check::that(!cache.find(key(2), "bin"), "half an entry is found");
  check::equal(read_file(*cache.find(key(1), "bin")), std::string("kept"));
}

void test_told_when_the_directory_is_of_no_use() {
  const TemporaryFolder folder;
  write_file(folder.path() / "file", "");
  const auto refuse = [](const fs::path& directory, const char* expected) {
    const DiskCache cache(directory, kRoomy);
    check::contains(store(cache, 1, "one"), directory.string() + ": " + expected);
    check::that(!cache.find(key(1), "bin"), "found where nothing can be");
    cache.remove(key(1), "bin");
  };
  refuse(folder.path() / "file", "not a directory");
  refuse(folder.path() / "file" / "below", "cannot create the cache directory: Not a directory");
  refuse("/proc/none", "cannot create the cache directory: No such file");
  refuse("", "cannot create the cache directory: No such file");
  fs::create_directory(folder.path() / "open");
  fs::permissions(folder.path() / "open", fs::perms::all);
  refuse(folder.path() / "open", "everyone may write to it");
  fs::permissions(folder.path() / "open", fs::perms::owner_all | fs::perms::group_all);
  refuse(folder.path() / "open", "its group may write to it");
}

void test_entries_still_found_when_the_directory_is_read_only() {
  const TemporaryFolder folder;
  const fs::path directory = folder.path() / "cache";
  const DiskCache cache(directory, kRoomy);
  store(cache, 1, "one");
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(directory, static_cast<fs::perms>(0555));
  // Root may write to what is read-only: be someone else.
  check::equal(wait_for(fork_to([&] {
                 check::that(geteuid() != 0 || seteuid(kNobody) == 0, "seteuid");
                 check::contains(store(cache, 2, "two"), directory.string() + ": cannot store a cache entry: Permission denied");
                 check::that(cache.find(key(1), "bin").has_value(), "an entry of a read-only cache is not found");
                 cache.remove(key(1), "bin");
                 check::that(cache.find(key(1), "bin").has_value(), "removed from a read-only cache");
               })),
               0);
  fs::permissions(directory, fs::perms::owner_all);
}

void test_ignored_when_an_entry_is_not_the_users() {
  const TemporaryFolder folder;
  const DiskCache cache(folder.path(), kRoomy);
  write_file(folder.path() / "elsewhere", "one");
  fs::create_symlink(folder.path() / "elsewhere", folder.path() / (key(1) + ".bin"));
  check::that(!cache.find(key(1), "bin"), "a link is taken for an entry");
  check::equal(store(cache, 1, "own"), std::string());
  check::equal(read_file(*cache.find(key(1), "bin")), std::string("own"));
  check::equal(read_file(folder.path() / "elsewhere"), std::string("one"), "the link's target");
  if (geteuid() == 0) {
    check::equal(chown((folder.path() / (key(1) + ".bin")).c_str(), kNobody, kNobody), 0);
    check::that(!cache.find(key(1), "bin"), "another user's file is taken for an entry");
    check::equal(chown(folder.path().c_str(), kNobody, kNobody), 0);
    check::contains(store(cache, 2, "two"), "belongs to another user; use a cache directory of your own");
  }
}

void test_all_entries_shown_without_being_used() {
  const TemporaryFolder folder;
  const DiskCache cache(folder.path(), kRoomy);
  for (int number : {1, 2, 3}) store(cache, number, content(number, static_cast<std::size_t>(number)));
  set_age(*cache.find(key(1), "bin"), std::chrono::hours(1));
  write_file(folder.path() / "notes.txt", "mine");
  fs::create_symlink(folder.path() / "notes.txt", folder.path() / (key(4) + ".bin"));
  for (int round = 0; round < 2; ++round) {
    const auto entries = cache.entries();
    check::equal(entries.size(), std::size_t{3});
    check::equal(entries.front().key, key(3));
    check::equal(entries.back().key, key(1));
    check::equal(entries.back().bytes, std::uint64_t{1});
    check::that(entries.back().used_s < entries.front().used_s - 3000, "listed, an entry counts as used");
  }
  check::that(cache.remove(key(1), "bin"), "an entry is not deleted");
  check::that(!cache.remove(key(1), "bin"), "an entry is deleted twice");
  try {
    static_cast<void>(DiskCache(folder.path() / "none", kRoomy).entries());
    check::that(false, "a folder that is not there has entries");
  } catch (const hipdnn_rt::InputError& error) {
    check::contains(error.what(), "No such file");
  }
}

void test_only_whole_entries_when_writers_are_killed() {
  const TemporaryFolder folder;
  const fs::path directory = folder.path() / "cache";
  constexpr std::size_t kBytes = 1U << 18;
  const DiskCache cache(directory, 8 * kBytes);
  for (int round = 0; round < 15; ++round) {
    const std::string text = content(round, kBytes);
    const pid_t writer = fork_to([&] {
      for (;;) store(cache, round, text);
    });
    // Killed at different points of its work, which goes through opening, writing, renaming and evicting over and over.
    wait_until([&] { return fs::exists(directory) && !fs::is_empty(directory); }, "the writer's first file");
    usleep(static_cast<useconds_t>(700 * round));
    kill(writer, SIGKILL);
    check::equal(wait_for(writer), -SIGKILL);
    for (int stored = 0; stored <= round; ++stored) {
      if (const auto found = cache.find(key(stored), "bin")) {
        check::that(read_file(*found) == content(stored, kBytes), "a killed writer left a broken entry");
      }
    }
  }
}

void test_leftovers_deleted_when_they_are_old() {
  const TemporaryFolder folder;
  const DiskCache cache(folder.path(), kRoomy);
  const fs::path old = folder.path() / ".hipdnn-partial-aaaaaa";
  const fs::path young = folder.path() / ".hipdnn-partial-bbbbbb";
  write_file(old, "half an ent");
  write_file(young, "half an ent");
  set_age(old, std::chrono::minutes(61));
  set_age(young, std::chrono::minutes(59));
  check::equal(store(cache, 1, "one"), std::string());
  check::that(!fs::exists(old), "what a dead writer left is still there");
  check::that(fs::exists(young), "a file of a writer that may be at work is gone");
}

/// Stores and finds what 30 keys stand for, in the process's own order.
void work_on_cache(const DiskCache& cache, unsigned seed, std::size_t largest) {
  for (int step = 0; step < 300; ++step) {
    seed = seed * 1664525U + 1013904223U;
    const int number = static_cast<int>((seed >> 16) % 30);
    const std::string expected = content(number, largest - static_cast<std::size_t>(number) * 100);
    const auto found = cache.find(key(number), "bin");
    // Open first: the entry may be evicted at any time, but what was opened stays.
    const int file = found ? open(found->c_str(), O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) {
      check::equal(store(cache, number, expected), std::string());
      continue;
    }
    std::string got(largest + 1, '\0');
    const ssize_t bytes = read(file, got.data(), got.size());
    close(file);
    got.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    check::that(got == expected, "an entry has other content than was stored");
  }
}

void test_whole_entries_within_the_bound_when_processes_compete() {
  const TemporaryFolder folder;
  constexpr std::size_t kLargest = 20'000;
  const fs::path directory = folder.path() / "cache";
  const DiskCache cache(directory, 5 * kLargest);
  std::vector<pid_t> workers;
  for (unsigned seed = 1; seed <= 8; ++seed) workers.push_back(fork_to([&] { work_on_cache(cache, seed, kLargest); }));
  for (const pid_t worker : workers) check::equal(wait_for(worker), 0, "a worker's status");
  check::that(total_bytes(directory) <= 5 * kLargest, "the entries exceed the bound");
  check::that(!fs::is_empty(directory), "nothing is left in the cache");
  for (const fs::path& file : files_in(directory)) check::contains(file.filename().string(), ".bin");
}

void test_default_directory_when_variables_vary() {
  const Variable home("HOME", "/home/someone");
  {
    const Variable cache("XDG_CACHE_HOME", "/var/cache/someone");
    check::equal(hipdnn_rt::default_cache_directory(), std::string("/var/cache/someone/hipdnn-mlir"));
  }
  const Variable cache("XDG_CACHE_HOME", "relative");
  check::equal(hipdnn_rt::default_cache_directory(), std::string("/home/someone/.cache/hipdnn-mlir"));
  const Variable no_cache("XDG_CACHE_HOME", std::nullopt);
  check::equal(hipdnn_rt::default_cache_directory(), std::string("/home/someone/.cache/hipdnn-mlir"));
  const Variable no_home("HOME", std::nullopt);
  check::equal(hipdnn_rt::default_cache_directory(), std::string());
}

}  // namespace

void add_disk_cache_cases(check::Suite& suite) {
  suite.add("disk cache: found when stored", test_found_when_stored);
  suite.add("disk cache: entries listed from the one used last", test_entries_listed_from_the_one_used_last);
  suite.add("disk cache: all entries shown without being used", test_all_entries_shown_without_being_used);
  suite.add("disk cache: refused when the key is none", test_refused_when_the_key_is_none);
  suite.add("disk cache: least recently used evicted when over the bound", test_least_recently_used_evicted_when_over_the_bound);
  suite.add("disk cache: not stored when larger than the bound", test_not_stored_when_larger_than_the_bound);
  suite.add("disk cache: nothing left when the disk is full", test_nothing_left_when_the_disk_is_full);
  suite.add("disk cache: told when the directory is of no use", test_told_when_the_directory_is_of_no_use);
  suite.add("disk cache: entries still found when the directory is read-only", test_entries_still_found_when_the_directory_is_read_only);
  suite.add("disk cache: ignored when an entry is not the user's", test_ignored_when_an_entry_is_not_the_users);
  suite.add("disk cache: only whole entries when writers are killed", test_only_whole_entries_when_writers_are_killed);
  suite.add("disk cache: leftovers deleted when they are old", test_leftovers_deleted_when_they_are_old);
  suite.add("disk cache: whole entries within the bound when processes compete", test_whole_entries_within_the_bound_when_processes_compete);
  suite.add("disk cache: default directory when variables vary", test_default_directory_when_variables_vary);
}

}  // namespace support_tests
