#include "program/stored_instances.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "program/checked.h"
#include "program/json_field.h"

namespace hipdnn_rt {
namespace {

using Json = nlohmann::json;

constexpr const char* kInstances = "instances";
constexpr const char* kSizes = "sizes";
/// What instances share: an instance has the positions of its own.
constexpr std::array kPooled{"executables", "kernels"};
constexpr std::size_t kInstanceLimit = 1024;
constexpr std::size_t kListLimit = 65'536;

/// How many combinations of buckets there are; nothing where a symbol has none, or there are too many.
std::optional<std::size_t> combinations(const std::vector<Sizes>& buckets) {
  std::optional<std::size_t> count = buckets.empty() ? 0 : 1;
  for (const Sizes& sizes : buckets) count = count ? checked_multiply(*count, sizes.size()) : std::nullopt;
  return count && *count > 0 && *count <= kInstanceLimit ? count : std::nullopt;
}

bool are_buckets(const Sizes& sizes, const std::vector<Sizes>& buckets) {
  if (sizes.size() != buckets.size()) return false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!std::binary_search(buckets[i].begin(), buckets[i].end(), sizes[i])) return false;
  }
  return true;
}

/// The members of a list at these positions.
Json picked(const Field& list, const Field& positions) {
  const auto last = static_cast<std::int64_t>(list.array_size(kListLimit)) - 1;
  Json found = Json::array();
  for (const std::int64_t position : positions.integers(kListLimit, 0, last)) found.push_back(list.at(static_cast<std::size_t>(position)).json());
  return found;
}

}  // namespace

StoredInstances StoredInstances::read(const Field& program, const std::vector<Sizes>& buckets) {
  StoredInstances made;
  const std::optional<Field> instances = program.find(kInstances);
  if (!instances) return made;
  const std::optional<std::size_t> expected = combinations(buckets);
  if (!expected) instances->fail("buckets for every symbol, of at most " + std::to_string(kInstanceLimit) + " combinations");
  const std::size_t count = instances->array_size(kInstanceLimit);
  for (std::size_t i = 0; i < count; ++i) {
    const Field field = instances->at(i)[kSizes];
    Sizes sizes = field.integers(kListLimit, 1, std::numeric_limits<std::int64_t>::max());
    if (!are_buckets(sizes, buckets) || !made.positions_.emplace(std::move(sizes), i).second) field.fail("a bucket of each symbol, each combination once");
  }
  if (count != *expected) instances->fail("one for each of the " + std::to_string(*expected) + " combinations of buckets");
  return made;
}

Json StoredInstances::at(const Json& program, const Sizes& sizes) const {
  const Field root(program, "program");
  const Field instance = root[kInstances].at(positions_.at(sizes));
  Json made = instance.json();
  made.erase(kSizes);
  for (const char* key : {"format", "target"}) made[key] = root[key].json();
  for (const char* key : kPooled) made[key] = picked(root[key], instance[key]);
  return made;
}

std::set<std::string> StoredInstances::tensors(const Json& program) const {
  std::set<std::string> names;
  const Field instances = Field(program, "program")[kInstances];
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    const Field constants = instances.at(i)["constants"];
    const std::size_t count = constants.array_size(kListLimit);
    for (std::size_t c = 0; c < count; ++c) names.insert(constants.at(c)["tensor"].text());
  }
  return names;
}

}  // namespace hipdnn_rt
