#include "storage/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "device/error.h"
#include "storage/partial_file.h"

namespace hipdnn_rt {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeyDigits = 64;
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kSuffixCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view kPartialPrefix = ".hipdnn-partial-";
constexpr std::time_t kPartialLifetimeSeconds = 3600;

std::string reason_of(int error) { return std::system_category().message(error); }

bool is_key(std::string_view text) { return text.size() == kKeyDigits && text.find_first_not_of(kHexDigits) == std::string_view::npos; }

bool is_suffix(std::string_view text) {
  return !text.empty() && text.size() <= kKeyDigits && text.find_first_not_of(kSuffixCharacters) == std::string_view::npos;
}

bool is_entry_name(std::string_view name) {
  return name.size() > kKeyDigits && name[kKeyDigits] == '.' && is_key(name.substr(0, kKeyDigits)) && is_suffix(name.substr(kKeyDigits + 1));
}

bool is_trusted_owner(const struct stat& status) { return status.st_uid == geteuid() || status.st_uid == 0; }

/// Why the directory cannot be used; empty for one that can.
std::string distrust(const fs::path& directory) {
  struct stat status {};
  if (stat(directory.c_str(), &status) != 0) return directory.string() + ": " + reason_of(errno);
  if (!S_ISDIR(status.st_mode)) return directory.string() + ": not a directory";
  if (!is_trusted_owner(status)) return directory.string() + ": belongs to another user; use a cache directory of your own";
  if ((status.st_mode & S_IWOTH) != 0) return directory.string() + ": everyone may write to it; use a cache directory of your own";
  if ((status.st_mode & S_IWGRP) != 0) return directory.string() + ": its group may write to it; take that right away: chmod g-w";
  return {};
}

/// Creates a directory and its parents for this user alone. Returns 0 or an error number.
int create_private(const fs::path& directory) {
  if (mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) return 0;
  const fs::path parent = directory.parent_path();
  if (errno != ENOENT || parent == directory || parent.empty()) return errno;
  if (const int error = create_private(parent); error != 0) return error;
  return mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST ? 0 : errno;
}

/// The present time to the nanosecond; what the kernel stamps by itself is as coarse as its tick, too coarse for an order of use.
std::array<timespec, 2> used_now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return {now, now};
}

/// An entry as the directory shows it; sorts by time of use, names deciding between equals.
struct Entry {
  std::time_t seconds;
  long nanoseconds;
  std::string name;
  std::uint64_t bytes;
  bool is_trusted;

  auto order() const { return std::tie(seconds, nanoseconds, name); }
  std::string key() const { return name.substr(0, kKeyDigits); }
  std::string suffix() const { return name.substr(kKeyDigits + 1); }
};

/// The cache's entries, those used latest first. Leftovers of dead writers are deleted on the way.
std::vector<Entry> list_and_sweep(const fs::path& directory, std::error_code& error) {
  std::vector<Entry> entries;
  const std::time_t now = std::time(nullptr);
  for (fs::directory_iterator file(directory, error); !error && file != fs::directory_iterator(); file.increment(error)) {
    const std::string name = file->path().filename().string();
    const bool is_partial = name.starts_with(kPartialPrefix);
    struct stat status {};
    if (!(is_partial || is_entry_name(name)) || lstat(file->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (!is_partial) {
      entries.push_back({status.st_mtim.tv_sec, status.st_mtim.tv_nsec, name, static_cast<std::uint64_t>(status.st_size), is_trusted_owner(status)});
    } else if (status.st_mtim.tv_sec + kPartialLifetimeSeconds < now) {
      unlink(file->path().c_str());
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return b.order() < a.order(); });
  return entries;
}

std::optional<fs::path> absolute_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value != '/') return std::nullopt;
  return fs::path(value);
}

}  // namespace

DiskCache::DiskCache(fs::path directory, std::uint64_t max_bytes) : directory_(std::move(directory)), max_bytes_(max_bytes) {}

fs::path DiskCache::path_of(std::string_view key, std::string_view suffix) const {
  if (!is_key(key)) throw Error("cache key '" + std::string(key) + "': expected 64 hexadecimal digits in lower case");
  if (!is_suffix(suffix)) throw Error("cache suffix '" + std::string(suffix) + "': expected lower-case letters, digits, - and _");
  return directory_ / (std::string(key) + "." + std::string(suffix));
}

std::optional<std::string> DiskCache::find(std::string_view key, std::string_view suffix) const {
  fs::path path = path_of(key, suffix);
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || !is_trusted_owner(status)) return std::nullopt;
  if (!distrust(directory_).empty()) return std::nullopt;
  // Fails for a cache that this user may only read, whose order of use is then nothing to keep.
  utimensat(AT_FDCWD, path.c_str(), used_now().data(), AT_SYMLINK_NOFOLLOW);
  return path.string();
}

std::string DiskCache::store(std::string_view key, std::string_view suffix, std::span<const std::byte> bytes) const {
  const fs::path path = path_of(key, suffix);
  if (bytes.size() > max_bytes_) {
    return directory_.string() + ": an entry of " + std::to_string(bytes.size()) + " bytes exceeds the cache's bound of " +
           std::to_string(max_bytes_) + " bytes";
  }
  if (const int error = create_private(directory_); error != 0) {
    return directory_.string() + ": cannot create the cache directory: " + reason_of(error);
  }
  if (std::string reason = distrust(directory_); !reason.empty()) return reason;
  PartialFile file((directory_ / kPartialPrefix).string());
  file.write(bytes);
  if (file.error() == 0) futimens(file.fd(), used_now().data());
  file.publish(path);
  if (file.error() != 0) return directory_.string() + ": cannot store a cache entry: " + reason_of(file.error());
  evict(path);
  return {};
}

std::vector<std::string> DiskCache::newest(std::string_view suffix, std::size_t most) const {
  if (!distrust(directory_).empty()) return {};
  std::error_code error;
  std::vector<std::string> keys;
  for (const Entry& entry : list_and_sweep(directory_, error)) {
    if (keys.size() < most && entry.suffix() == suffix) keys.push_back(entry.key());
  }
  return keys;
}

std::vector<CacheEntry> DiskCache::entries() const {
  if (const std::string reason = distrust(directory_); !reason.empty()) throw InputError(reason);
  constexpr double kSecondsPerNanosecond = 1e-9;
  std::error_code error;
  std::vector<CacheEntry> entries;
  for (const Entry& entry : list_and_sweep(directory_, error)) {
    const double used_s = static_cast<double>(entry.seconds) + kSecondsPerNanosecond * static_cast<double>(entry.nanoseconds);
    if (entry.is_trusted) entries.push_back({entry.key(), entry.suffix(), entry.bytes, used_s});
  }
  if (error) throw InputError(directory_.string() + ": " + error.message());
  return entries;
}

bool DiskCache::remove(std::string_view key, std::string_view suffix) const { return unlink(path_of(key, suffix).c_str()) == 0; }

void DiskCache::evict(const fs::path& newest) const {
  std::error_code error;
  const std::vector<Entry> entries = list_and_sweep(directory_, error);
  std::uint64_t total = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (total <= max_bytes_) return;
    const fs::path path = directory_ / entry->name;
    if (path == newest) continue;
    // Another process may have been faster; the bytes are gone either way.
    if (unlink(path.c_str()) == 0 || errno == ENOENT) total -= entry->bytes;
  }
}

std::string default_cache_directory() {
  if (const auto cache = absolute_variable("XDG_CACHE_HOME")) return (*cache / "hipdnn-mlir").string();
  if (const auto home = absolute_variable("HOME")) return (*home / ".cache" / "hipdnn-mlir").string();
  return {};
}

}  // namespace hipdnn_rt
