#include "plan/plan_judge.h"

#include <chrono>
#include <cmath>
#include <cstdio>

#include "device/error.h"
#include "plan/reference.h"

namespace hipdnn_rt {
namespace {

/// Multiplications: some milliseconds of a CPU.
constexpr double kMostWork = 2e8;

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text;
}

}  // namespace

PlanJudge::PlanJudge(const Device& device, const Executable& executable, PlanTimer& timer, std::string label)
    : device_(device), excerpt_(excerpt_of(executable, kMostWork)), timer_(timer), label_(std::move(label)) {}

const std::vector<Answer>& PlanJudge::wanted() {
  if (wanted_) return *wanted_;
  wanted_.emplace();
  if (device_.reference() == nullptr) return *wanted_;
  const auto start = std::chrono::steady_clock::now();
  try {
    *wanted_ = device_.reference()->compute(excerpt_.executable, timer_.contents(excerpt_.pieces));
    const auto elapsed = std::chrono::steady_clock::now() - start;
    device_.log(HIPDNN_SEV_INFO, label_ + ": the reference took " +
                                     std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count()) + " ms");
  } catch (const NoPlanError& error) {
    device_.log(HIPDNN_SEV_INFO, label_ + ": its plans are not compared, the host library has no reference: " + error.what());
  } catch (const std::exception& error) {  // memory that is short, most of all
    device_.log(HIPDNN_SEV_WARN, label_ + ": its plans are not compared: " + error.what());
    wanted_->clear();
    has_failed_ = true;
  }
  return *wanted_;
}

std::optional<std::string> PlanJudge::why_wrong(std::span<const Answer> answer) {
  const std::vector<Answer>& reference = wanted();
  const double tolerance = tolerance_of(excerpt_.executable, device_.allows_tf32());
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const Comparison found = compare(answer[i], reference[i], tolerance);
    if (found.is_right) continue;
    return "answers wrongly: " + (std::isinf(found.worst) ? "values that are no numbers or not written" : "up to " + short_number(found.worst) + " of a result's size") +
           " from the host library, where " + short_number(tolerance) + " is rounding";
  }
  return std::nullopt;
}

}  // namespace hipdnn_rt
