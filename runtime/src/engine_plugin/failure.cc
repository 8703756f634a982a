#include "engine_plugin/failure.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>

#include "device/error.h"

namespace hipdnn_plugin {
namespace {

/// With its terminator: the length that hipDNN recommends.
constexpr std::size_t most_characters = 2048;
thread_local std::array<char, most_characters> thread_error{};

std::atomic<hipdnnCallback_t> log_callback = nullptr;
std::atomic<hipdnnSeverity_t> log_level = HIPDNN_SEV_INFO;

/// Names in graphs may be any bytes; readers of a message expect text.
char printable(char c) { return c >= ' ' && c <= '~' ? c : '?'; }

hipdnnPluginStatus_t keep(std::string_view call, std::string_view reason, hipdnnPluginStatus_t status) noexcept {
  std::size_t length = 0;
  for (const std::string_view part : {call, std::string_view(": "), reason}) {
    const std::size_t fitting = std::min(part.size(), thread_error.size() - 1 - length);
    std::ranges::transform(part.substr(0, fitting), thread_error.data() + length, printable);
    length += fitting;
  }
  thread_error[length] = '\0';
  if (const hipdnnCallback_t callback = log_callback; callback != nullptr && log_level <= HIPDNN_SEV_ERROR) {
    callback(HIPDNN_SEV_ERROR, thread_error.data());
  }
  return status;
}

}  // namespace

hipdnnPluginStatus_t failed(std::string_view call) noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return keep(call, failure.what(), failure.status());
  } catch (const hipdnn_rt::LibraryError& error) {
    return keep(call, error.what(), error.is_refusal() ? HIPDNN_PLUGIN_STATUS_NOT_APPLICABLE : HIPDNN_PLUGIN_STATUS_INTERNAL_ERROR);
  } catch (const std::bad_alloc&) {
    return keep(call, "out of memory", HIPDNN_PLUGIN_STATUS_ALLOC_FAILED);
  } catch (const std::exception& error) {
    return keep(call, error.what(), HIPDNN_PLUGIN_STATUS_INTERNAL_ERROR);
  } catch (...) {
    return keep(call, "unknown exception", HIPDNN_PLUGIN_STATUS_INTERNAL_ERROR);
  }
}

const char* last_error() noexcept { return thread_error.data(); }

void set_log_callback(hipdnnCallback_t callback) noexcept { log_callback = callback; }

void set_log_level(hipdnnSeverity_t level) noexcept { log_level = level; }

void log(hipdnnSeverity_t severity, std::string line) noexcept {
  const hipdnnCallback_t callback = log_callback;
  if (callback == nullptr || log_level > severity) return;
  std::ranges::transform(line, line.begin(), printable);
  callback(severity, line.c_str());
}

}  // namespace hipdnn_plugin
