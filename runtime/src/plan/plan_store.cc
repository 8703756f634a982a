#include "plan/plan_store.h"

#include <nlohmann/json.hpp>

#include "storage/sealed.h"
#include "storage/sha256.h"

namespace hipdnn_rt {
namespace {

constexpr std::string_view kPlanSuffix = "plan";
/// Part of every key: what a record holds, and how plans are keyed.
constexpr std::string_view kPlanFormat = "hipdnn-mlir plan 2";

}  // namespace

std::vector<std::byte> PlanRecord::encode() const {
  const nlohmann::json line = {{"engine_id", engine_id}, {"engine", engine_name}, {"knobs", knobs}, {"timed", timed_plans},
                               {"time_us", time_us}, {"plan_bytes", plan.size()}, {"key", key}};
  return seal(line.dump(), plan);
}

std::optional<PlanRecord> PlanRecord::decode(std::span<const std::byte> bytes) {
  const auto found = unseal(bytes);
  if (!found) return std::nullopt;
  // A digest is no signature: whoever can write the file can write anything.
  const nlohmann::json line = nlohmann::json::parse(found->line, nullptr, false);
  try {
    PlanRecord record;
    record.engine_id = line.at("engine_id").get<std::int64_t>();
    record.engine_name = line.at("engine").get<std::string>();
    record.knobs = line.at("knobs").get<std::string>();
    record.timed_plans = line.at("timed").get<int>();
    record.time_us = line.at("time_us").get<double>();
    record.key = line.at("key").get<std::string>();
    if (found->rest.size() != line.at("plan_bytes").get<std::size_t>()) return std::nullopt;
    record.plan.assign(found->rest.begin(), found->rest.end());
    return record;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

PlanStore::PlanStore(std::string folder, std::uint64_t max_bytes, std::string setting, Log log)
    : cache_(std::move(folder), max_bytes), setting_(std::move(setting)), log_(std::move(log)) {}

std::string PlanStore::key(std::string_view canonical, std::span<const std::int64_t> constants) const {
  Sha256 digest;
  digest.update(kPlanFormat);
  digest.update("\n" + setting_ + "\nconstants ");
  for (const std::int64_t uid : constants) digest.update(std::to_string(uid) + " ");
  digest.update("\n");
  digest.update(canonical);
  return digest.hex_digest();
}

std::optional<PlanRecord> PlanStore::find(const std::string& key) const {
  const auto path = cache_.find(key, kPlanSuffix);
  if (!path) return std::nullopt;
  const auto bytes = read_file(*path);
  if (!bytes) return std::nullopt;  // another process was faster with deleting it
  const std::optional<PlanRecord> record = PlanRecord::decode(*bytes);
  if (record && record->key == key) return record;
  if (log_) log_(HIPDNN_SEV_WARN, *path + ": not a plan, a damaged one or one of another key; it is made again");
  cache_.remove(key, kPlanSuffix);
  return std::nullopt;
}

void PlanStore::store(const PlanRecord& record) const {
  const std::string failure = cache_.store(record.key, kPlanSuffix, record.encode());
  if (!failure.empty() && log_) log_(HIPDNN_SEV_WARN, "the plan is not kept: " + failure);
}

}  // namespace hipdnn_rt
