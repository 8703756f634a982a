#include "plan/refusal_store.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "storage/sealed.h"
#include "storage/sha256.h"

namespace hipdnn_rt {
namespace {

constexpr std::string_view kRefusalSuffix = "refusal";
/// Part of every key: what an entry holds, and how it is keyed.
constexpr std::string_view kRefusalFormat = "hipdnn-mlir refusal 1\n";
/// Entries that are read; older ones are as if they were not there.
constexpr std::size_t kMostRead = 1024;
/// Of the library's words, in bytes.
constexpr std::size_t kMostWords = 4096;

std::string digest_of(std::initializer_list<std::string_view> parts) {
  Sha256 digest;
  for (const std::string_view part : parts) digest.update(part);
  return digest.hex_digest();
}

/// The setting and the refusal of an entry; nothing for a damaged one.
std::optional<std::pair<std::string, RefusedPlan>> decode(std::span<const std::byte> bytes) {
  const auto found = unseal(bytes);
  if (!found || !found->rest.empty()) return std::nullopt;
  const nlohmann::json line = nlohmann::json::parse(found->line, nullptr, false);
  try {
    const auto text = [&](const char* name) { return line.at(name).get<std::string>(); };
    return std::pair(text("setting"), RefusedPlan{text("graph"), text("summary"), text("nodes"), text("reason")});
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

RefusalStore::RefusalStore(const Device& device, const std::string& folder)
    : cache_(folder, device.environment().plan_cache_bytes),
      setting_(digest_of({kRefusalFormat, device.library_setting()})),
      log_(device.environment().log) {}

std::vector<RefusedPlan> RefusalStore::all() const {
  std::vector<RefusedPlan> refusals;
  for (const std::string& key : cache_.newest(kRefusalSuffix, kMostRead)) {
    const auto path = cache_.find(key, kRefusalSuffix);
    const auto bytes = path ? read_file(*path) : std::nullopt;
    if (!bytes) continue;  // another process was faster with deleting it
    auto found = decode(*bytes);
    if (!found) {
      if (log_) log_(HIPDNN_SEV_WARN, *path + ": no refusal of a graph, or a damaged one; the library is asked again");
      cache_.remove(key, kRefusalSuffix);
    } else if (found->first == setting_) {
      refusals.push_back(std::move(found->second));
    }
  }
  return refusals;
}

void RefusalStore::add(const RefusedPlan& refusal) const {
  const nlohmann::json line = {{"setting", setting_},
                               {"graph", refusal.graph},
                               {"summary", refusal.summary},
                               {"nodes", refusal.nodes.substr(0, kMostWords)},
                               {"reason", refusal.reason.substr(0, kMostWords)}};
  // A library's words, or what is left of a cut one, need not be UTF-8.
  const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::string failure = cache_.store(digest_of({setting_, "\n", refusal.graph}), kRefusalSuffix, seal(text));
  if (!failure.empty() && log_) log_(HIPDNN_SEV_WARN, "the refusal of a graph is not kept: " + failure);
}

}  // namespace hipdnn_rt
