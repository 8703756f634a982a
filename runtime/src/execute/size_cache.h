// What is made for combinations of sizes, the least recently used of it dropped.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace hipdnn_rt {

/// Safe to use from several threads. A value lives as long as somebody holds it, whether it is still here or not.
template <typename Value>
class SizeCache {
 public:
  /// Keep up to `capacity` values, at least one.
  explicit SizeCache(std::size_t capacity) : capacity_(std::max<std::size_t>(capacity, 1)) {}

  /// The value for `key`, made by `make` where there is none: one at a time, so that threads that meet the same new sizes make it once.
  template <typename Make>
  std::shared_ptr<Value> get(std::span<const std::int64_t> key, const Make& make) {
    if (std::shared_ptr<Value> known = find(key)) return known;
    const std::lock_guard making(making_);
    if (std::shared_ptr<Value> known = find(key)) return known;
    if (count() >= capacity_) drop_oldest();  // before the next is made, so that there are never more
    std::shared_ptr<Value> made = make();
    const std::lock_guard lock(mutex_);
    entries_.push_back({{key.begin(), key.end()}, made, ++clock_});
    return made;
  }

  std::shared_ptr<Value> find(std::span<const std::int64_t> key) {
    const std::lock_guard lock(mutex_);
    for (Entry& entry : entries_) {
      if (!std::equal(entry.key.begin(), entry.key.end(), key.begin(), key.end())) continue;
      entry.last_use = ++clock_;
      return entry.value;
    }
    return nullptr;
  }

  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }

 private:
  struct Entry {
    std::vector<std::int64_t> key;
    std::shared_ptr<Value> value;
    std::uint64_t last_use;
  };

  void drop_oldest() {
    std::shared_ptr<Value> dropped;  // ends after the lock
    const std::lock_guard lock(mutex_);
    const auto oldest =
        std::min_element(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.last_use < b.last_use; });
    if (oldest == entries_.end()) return;
    dropped = std::move(oldest->value);
    entries_.erase(oldest);
  }

  std::size_t capacity_;
  std::mutex making_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace hipdnn_rt
