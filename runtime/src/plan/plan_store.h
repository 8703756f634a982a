// What was chosen for graphs, kept on disk: the engine, and the plan itself where its library can write it down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/log.h"
#include "storage/disk_cache.h"

namespace hipdnn_rt {

/// One choice.
struct PlanRecord {
  std::int64_t engine_id = 0;
  std::string engine_name;
  /// As those of a Proposal.
  std::string knobs;
  /// How many proposals were allowed to be timed; 0 where the first one was taken.
  int timed_plans = 0;
  /// Of the chosen one, in microseconds; 0 where it was not timed.
  double time_us = 0;
  /// The library's own form of the plan; empty where it has none.
  std::vector<std::byte> plan;
  /// What it is kept under.
  std::string key;

  /// A file's bytes, with a checksum over all else.
  std::vector<std::byte> encode() const;
  /// Nothing for bytes that are no record, or a damaged one.
  static std::optional<PlanRecord> decode(std::span<const std::byte> bytes);
};

/// A folder of records. Safe to use from any number of threads and processes; see DiskCache for whom it trusts. Nothing throws: a failure is a
/// line in the log, and as if there were no record.
class PlanStore {
 public:
  /// `setting` is all that plans depend on beside their graph: port, device, library, options.
  PlanStore(std::string folder, std::uint64_t max_bytes, std::string setting, Log log);

  /// The key of a graph, given by its canonical text, where these tensors are bound to constants.
  std::string key(std::string_view canonical, std::span<const std::int64_t> constants) const;
  /// The record under a key. A broken one is deleted, and one of another key.
  std::optional<PlanRecord> find(const std::string& key) const;
  /// Keep a record under its key.
  void store(const PlanRecord& record) const;

 private:
  DiskCache cache_;
  std::string setting_;
  Log log_;
};

}  // namespace hipdnn_rt
