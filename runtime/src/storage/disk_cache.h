// Results on disk (compiled programs, plans), found again by what they were made from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hipdnn_rt {

/// What a cache shows of an entry.
struct CacheEntry {
  std::string key;
  std::string suffix;
  std::uint64_t bytes;
  /// When it was last stored or found, in seconds since 1970.
  double used_s;
};

/// Entries `<key>.<suffix>` in one directory; the key is a SHA-256 in hexadecimal of all that determines the content, so that an entry is
/// never changed, only replaced by its equal. Immutable; any number of threads and processes may use a directory at once: a writer's entry
/// appears as a whole or not at all, however the writer ends.
///
/// Trust: the directory must belong to this user or to root, and not everyone may write to it; entries must be regular files (no links)
/// that belong to this user or to root. Anything else is as if it were not there, and nothing is stored. Only files with names of this
/// cache's form are ever deleted. Content is not checked: after a power failure an entry may be damaged, so a reader that finds it so
/// calls `remove` and makes it again.
class DiskCache {
 public:
  /// Touches no file. After a `store` the entries together have at most `max_bytes` (those of writers at work come on top).
  DiskCache(std::filesystem::path directory, std::uint64_t max_bytes);

  const std::filesystem::path& directory() const { return directory_; }

  /// The entry's file, which counts as used now; nothing where there is none. Another process may evict it before the caller opens it:
  /// treat a file that cannot be opened as not found. A mapped or opened file stays readable.
  std::optional<std::string> find(std::string_view key, std::string_view suffix) const;

  /// Writes an entry and evicts the least recently used others beyond the bound. An entry larger than the bound is not stored. Creates the
  /// directory, for this user only, with its parents. Deletes what writers killed more than an hour ago left.
  /// Returns why nothing was stored, a line for a log, or an empty text: the cache is a help, so its failure must not be the caller's.
  std::string store(std::string_view key, std::string_view suffix, std::span<const std::byte> bytes) const;

  /// Keys of the entries of a suffix, at most so many, those used latest first. Fit to be looked for; another process may evict them.
  std::vector<std::string> newest(std::string_view suffix, std::size_t most) const;

  /// All entries, those used latest first; they do not count as used by that. Throws InputError for a directory that is not there, cannot be read
  /// or is not to be trusted.
  std::vector<CacheEntry> entries() const;

  /// Deletes an entry; whether there was one that could be deleted.
  bool remove(std::string_view key, std::string_view suffix) const;

 private:
  /// Throws Error for a key or suffix that is none; this is a mistake in the calling code.
  std::filesystem::path path_of(std::string_view key, std::string_view suffix) const;
  void evict(const std::filesystem::path& newest) const;

  std::filesystem::path directory_;
  std::uint64_t max_bytes_;
};

/// `$XDG_CACHE_HOME/hipdnn-mlir` or `$HOME/.cache/hipdnn-mlir`; empty where neither variable is an absolute path.
std::string default_cache_directory();

}  // namespace hipdnn_rt
