#include "hipdnn_rt/plan_store.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "hipdnn_rt/error.h"
#include "hipdnn_rt/sha256.h"

namespace hipdnn_rt {
namespace {

constexpr std::string_view kSuffix = "plan";
/// Part of every key: what a record holds, and how plans are keyed.
constexpr std::string_view kFormat = "hipdnn-mlir plan 1";
constexpr std::size_t kDigestDigits = 64;
/// Of a record's line of JSON.
constexpr std::size_t kLineLimit = 65'536;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string digest_of(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.hex_digest();
}

std::optional<std::vector<std::byte>> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return std::nullopt;
  const auto bytes = bytes_of(text);
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

}  // namespace

std::vector<std::byte> PlanRecord::encode() const {
  const nlohmann::json line = {{"engine_id", engine_id}, {"engine", engine_name},   {"knobs", knobs},
                               {"timed", timed_plans},   {"time_us", time_us}, {"plan_bytes", plan.size()}};
  std::vector<std::byte> content;
  append(content, bytes_of(line.dump() + "\n"));
  append(content, plan);
  std::vector<std::byte> file;
  append(file, bytes_of(digest_of(content) + "\n"));
  append(file, content);
  return file;
}

std::optional<PlanRecord> PlanRecord::decode(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() <= kDigestDigits || text[kDigestDigits] != '\n') return std::nullopt;
  const std::string_view content = text.substr(kDigestDigits + 1);
  if (digest_of(bytes_of(content)) != text.substr(0, kDigestDigits)) return std::nullopt;
  const std::size_t end = content.substr(0, kLineLimit).find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  // A digest is no signature: whoever can write the file can write anything.
  const nlohmann::json line = nlohmann::json::parse(content.substr(0, end), nullptr, false);
  try {
    PlanRecord record;
    record.engine_id = line.at("engine_id").get<std::int64_t>();
    record.engine_name = line.at("engine").get<std::string>();
    record.knobs = line.at("knobs").get<std::string>();
    record.timed_plans = line.at("timed").get<int>();
    record.time_us = line.at("time_us").get<double>();
    const auto plan = bytes_of(content.substr(end + 1));
    if (plan.size() != line.at("plan_bytes").get<std::size_t>()) return std::nullopt;
    record.plan.assign(plan.begin(), plan.end());
    return record;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

PlanStore::PlanStore(std::string folder, std::uint64_t max_bytes, std::string setting, Log log)
    : cache_(std::move(folder), max_bytes), setting_(std::move(setting)), log_(std::move(log)) {}

std::string PlanStore::key(std::string_view canonical, std::span<const std::int64_t> constants) const {
  Sha256 digest;
  digest.update(kFormat);
  digest.update("\n" + setting_ + "\nconstants ");
  for (const std::int64_t uid : constants) digest.update(std::to_string(uid) + " ");
  digest.update("\n");
  digest.update(canonical);
  return digest.hex_digest();
}

std::optional<PlanRecord> PlanStore::find(const std::string& key) const {
  const auto path = cache_.find(key, kSuffix);
  if (!path) return std::nullopt;
  const auto bytes = read_file(*path);
  if (!bytes) return std::nullopt;  // another process was faster with deleting it
  std::optional<PlanRecord> record = PlanRecord::decode(*bytes);
  if (!record) {
    if (log_) log_(HIPDNN_SEV_WARN, *path + ": not a plan, or a damaged one; it is made again");
    cache_.remove(key, kSuffix);
  }
  return record;
}

void PlanStore::store(const std::string& key, const PlanRecord& record) const {
  const std::string failure = cache_.store(key, kSuffix, record.encode());
  if (!failure.empty() && log_) log_(HIPDNN_SEV_WARN, "the plan is not kept: " + failure);
}

}  // namespace hipdnn_rt
