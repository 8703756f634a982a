// Process-wide log state, as the ABI's functions define it.
#include "log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

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

/// A callback with its user pointer is one listener, whatever else listens.
struct Listener {
  hipdnnUserLogCallback_t callback = nullptr;
  void* user = nullptr;
  hipdnnSeverity_t minimum = HIPDNN_SEV_OFF;
};

struct Log {
  std::atomic<hipdnnSeverity_t> level{level_from_environment()};
  /// The lowest severity that any listener wants.
  std::atomic<hipdnnSeverity_t> callback_level{HIPDNN_SEV_OFF};
  std::mutex mutex;
  std::vector<Listener> listeners;
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
  if (severity < log.callback_level.load()) return;
  std::vector<Listener> listeners;
  {
    const std::lock_guard lock(log.mutex);
    listeners = log.listeners;
  }
  for (const Listener& listener : listeners) {  // unlocked: a callback may log or remove itself
    if (severity >= listener.minimum) listener.callback(listener.user, severity, message.c_str());
  }
}

void set_log_level(hipdnnSeverity_t severity) { state().level = severity; }

hipdnnSeverity_t log_level() { return state().level; }

void set_log_callback(hipdnnUserLogCallback_t callback, hipdnnSeverity_t minimum, void* user) {
  Log& log = state();
  const std::lock_guard lock(log.mutex);
  std::erase_if(log.listeners, [&](const Listener& listener) { return listener.callback == callback && listener.user == user; });
  if (minimum != HIPDNN_SEV_OFF) log.listeners.push_back({callback, user, minimum});
  hipdnnSeverity_t lowest = HIPDNN_SEV_OFF;
  for (const Listener& listener : log.listeners) lowest = std::min(lowest, listener.minimum);
  log.callback_level = lowest;
}

}  // namespace hipdnn_port
