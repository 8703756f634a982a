// The programs of a file that holds one for each combination of its buckets, where code is made for exact sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace hipdnn_rt {

class Field;

/// A value per symbol.
using Sizes = std::vector<std::int64_t>;

/// Says which member of a program's `instances` is made for which sizes. Immutable, safe to share between threads.
class StoredInstances {
 public:
  StoredInstances() = default;
  /// Read the `instances` of a program; there are none where it has no such field. Throws ProgramError unless there is one for each
  /// combination of buckets.
  static StoredInstances read(const Field& program, const std::vector<Sizes>& buckets);

  bool empty() const { return positions_.empty(); }
  bool has(const Sizes& sizes) const { return positions_.contains(sizes); }
  /// The program for sizes that there are, as a file without open sizes would have it; not checked further. `program` is the one that was read.
  nlohmann::json at(const nlohmann::json& program, const Sizes& sizes) const;
  /// Names of the tensors that instances of a program use.
  std::set<std::string> tensors(const nlohmann::json& program) const;

 private:
  std::map<Sizes, std::size_t> positions_;
};

}  // namespace hipdnn_rt
