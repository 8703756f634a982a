// Process-wide log state, as the ABI's functions define it.
#include "log.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

#include "engine.h"

namespace hipdnn_port {
namespace {

constexpr std::array<std::pair<std::string_view, hipdnnSeverity_t>, 5> severity_names{{{"info", HIPDNN_SEV_INFO},
                                                                                       {"warn", HIPDNN_SEV_WARN},
                                                                                       {"error", HIPDNN_SEV_ERROR},
                                                                                       {"fatal", HIPDNN_SEV_FATAL},
                                                                                       {"off", HIPDNN_SEV_OFF}}};

hipdnnSeverity_t level_from_environment() {
  const char* wanted = std::getenv("HIPDNN_LOG_LEVEL");
  if (wanted == nullptr) return HIPDNN_SEV_OFF;
  for (const auto& [name, severity] : severity_names) {
    if (name == wanted) return severity;
  }
  return HIPDNN_SEV_OFF;
}

struct Log {
  std::atomic<hipdnnSeverity_t> level{level_from_environment()};
  std::atomic<hipdnnSeverity_t> callback_level{HIPDNN_SEV_OFF};
  std::mutex mutex;
  hipdnnUserLogCallback_t callback = nullptr;
  void* user = nullptr;
};

// The log's setters take no handle in the ABI, so its state belongs to the process. Never destroyed: threads may log during exit.
Log& state() {
  static Log& log = *new Log;
  return log;
}

}  // namespace

bool is_logged(hipdnnSeverity_t severity) {
  const Log& log = state();
  return severity != HIPDNN_SEV_OFF && (severity >= log.level.load() || severity >= log.callback_level.load());
}

void log(hipdnnSeverity_t severity, const std::string& message) {
  if (!is_logged(severity)) return;
  Log& log = state();
  if (severity >= log.level.load()) {
    std::fprintf(stderr, "%s %s: %s\n", library_name().data(), severity_names.at(severity).first.data(), message.c_str());
  }
  hipdnnUserLogCallback_t callback = nullptr;
  void* user = nullptr;
  {
    const std::lock_guard lock(log.mutex);
    if (severity >= log.callback_level.load()) {
      callback = log.callback;
      user = log.user;
    }
  }
  if (callback != nullptr) callback(user, severity, message.c_str());  // unlocked: a callback may log or replace itself
}

void set_log_level(hipdnnSeverity_t severity) { state().level = severity; }

hipdnnSeverity_t log_level() { return state().level; }

void set_log_callback(hipdnnUserLogCallback_t callback, hipdnnSeverity_t minimum, void* user) {
  Log& log = state();
  const std::lock_guard lock(log.mutex);
  const bool removed = minimum == HIPDNN_SEV_OFF;
  log.callback = removed ? nullptr : callback;
  log.user = removed ? nullptr : user;
  log.callback_level = minimum;
}

}  // namespace hipdnn_port
