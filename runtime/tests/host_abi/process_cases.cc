// What belongs to the process: log, version, plugins; and profiling.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "cases.h"
#include "models.h"

namespace abi {
namespace {

/// The global log level, put back at the end.
class LogLevel {
 public:
  explicit LogLevel(const Library& library)
      : set(library.backend.optional<decltype(::hipdnnBackendSetGlobalLogLevel_ext)>("hipdnnBackendSetGlobalLogLevel_ext")),
        get(library.backend.optional<decltype(::hipdnnBackendGetGlobalLogLevel_ext)>("hipdnnBackendGetGlobalLogLevel_ext")) {
    check::equal(get(&before_), HIPDNN_STATUS_SUCCESS);
  }
  ~LogLevel() { set(before_); }
  LogLevel(const LogLevel&) = delete;
  LogLevel& operator=(const LogLevel&) = delete;

  decltype(&::hipdnnBackendSetGlobalLogLevel_ext) set;
  decltype(&::hipdnnBackendGetGlobalLogLevel_ext) get;

 private:
  hipdnnSeverity_t before_{};
};

void test_log_level_is_kept(const Library& library) {
  const LogLevel level(library);
  for (const hipdnnSeverity_t wanted : {HIPDNN_SEV_FATAL, HIPDNN_SEV_OFF}) {
    hipdnnSeverity_t got{};
    check::equal(level.set(wanted), HIPDNN_STATUS_SUCCESS);
    check::equal(level.get(&got), HIPDNN_STATUS_SUCCESS);
    check::equal(got, wanted);
  }
  check::that(level.get(nullptr) != HIPDNN_STATUS_SUCCESS, "nowhere to write the level");
}

struct Message {
  hipdnnSeverity_t severity;
  std::string text;
};

void collect(void* user, hipdnnSeverity_t severity, const char* message) {
  static_cast<std::vector<Message>*>(user)->push_back({severity, message == nullptr ? "" : message});
}

/// Removes a callback, which must not outlive what it writes to, also where a check fails.
struct RemoveCallback {
  ~RemoveCallback() { set_callback(collect, HIPDNN_SEV_OFF, HIPDNN_LOG_CALLBACK_SYNC, messages); }
  decltype(&::hipdnnSetUserLogCallback_ext) set_callback;
  std::vector<Message>* messages;
};

void test_each_log_callback_gets_messages_until_it_is_removed(const Library& library) {
  const auto set_callback = library.backend.optional<decltype(::hipdnnSetUserLogCallback_ext)>("hipdnnSetUserLogCallback_ext");
  const LogLevel level(library);
  std::vector<Message> all, errors;
  const auto listen = [&](std::vector<Message>& messages, hipdnnSeverity_t from) {
    check::equal(set_callback(collect, from, HIPDNN_LOG_CALLBACK_SYNC, &messages), HIPDNN_STATUS_SUCCESS);
  };
  const auto work = [&] {
    const Handle handle(library);
    const AddRelu model(library, handle);
    plan(library, model.graph);
    library.finalize(nullptr);
  };
  for (const hipdnnSeverity_t from : {HIPDNN_SEV_INFO, HIPDNN_SEV_OFF}) {
    check::that(set_callback(collect, from, HIPDNN_LOG_CALLBACK_SYNC, nullptr) != HIPDNN_STATUS_SUCCESS, "without a user pointer");
    check::that(set_callback(nullptr, from, HIPDNN_LOG_CALLBACK_SYNC, &all) != HIPDNN_STATUS_SUCCESS, "without a callback");
  }
  check::equal(level.set(HIPDNN_SEV_INFO), HIPDNN_STATUS_SUCCESS);
  const RemoveCallback remove_all{set_callback, &all}, remove_errors{set_callback, &errors};
  listen(all, HIPDNN_SEV_INFO);
  work();
  const std::size_t first = all.size();
  listen(errors, HIPDNN_SEV_ERROR);
  work();
  if (first > 0) check::that(all.size() > first, "a second callback takes no messages from the first");
  listen(all, HIPDNN_SEV_OFF);
  const std::size_t count = all.size(), error_count = errors.size();
  work();
  check::equal(all.size(), count, "messages after removal");
  if (error_count > 0) check::that(errors.size() > error_count, "removing one callback keeps the other");
  listen(errors, HIPDNN_SEV_OFF);
  for (const Message& message : all) check::that(!message.text.empty(), "a message without a text");
  for (const Message& message : errors) check::that(message.severity >= HIPDNN_SEV_ERROR, "below the level: " + message.text);
  if (all.empty()) throw check::Refused("the library logs nothing at level INFO, of a failure neither");
}

void test_version_has_four_parts(const Library& library) {
  const std::string text = library.backend.optional<decltype(::hipdnnVersionString_ext)>("hipdnnVersionString_ext")();
  // AMD's fourth part may be a word, and a port may tell its vendor libraries behind it.
  unsigned major = 0, minor = 0, patch = 0;
  int read = 0;
  const int numbers = std::sscanf(text.c_str(), "%u.%u.%u.%n", &major, &minor, &patch, &read);
  check::that(numbers == 3 && read > 0 && static_cast<std::size_t>(read) < text.size(), "MAJOR.MINOR.PATCH.TWEAK, got " + text);
  const char* other = nullptr;
  check::equal(library.backend.optional<decltype(::hipdnnGetVersion_ext)>("hipdnnGetVersion_ext")(&other), HIPDNN_STATUS_SUCCESS);
  check::equal(text, std::string(other));
}

void test_engine_plugin_paths_come_too_late_for_a_handle(const Library& library) {
  const auto set = library.backend.optional<decltype(::hipdnnSetEnginePluginPaths_ext)>("hipdnnSetEnginePluginPaths_ext");
  const Handle handle(library);
  const char* path = "/no/such/folder";
  check::equal(set(1, &path, HIPDNN_PLUGIN_LOADING_ADDITIVE), HIPDNN_STATUS_NOT_SUPPORTED);
  check::that(!library.last_error().empty(), "a message");
}

void test_heuristic_plugin_paths_come_too_late_for_a_handle(const Library& library) {
  const auto set = library.backend.optional<decltype(::hipdnnSetEnginePluginPaths_ext)>("hipdnnSetHeuristicPluginPaths_ext");
  const Handle handle(library);
  const char* path = "/no/such/folder";
  check::equal(set(1, &path, HIPDNN_PLUGIN_LOADING_ADDITIVE), HIPDNN_STATUS_NOT_SUPPORTED);
}

void test_loaded_plugins_are_listed_in_two_calls(const Library& library) {
  const auto loaded = library.backend.optional<decltype(::hipdnnGetLoadedEnginePluginPaths_ext)>("hipdnnGetLoadedEnginePluginPaths_ext");
  const Handle handle(library);
  std::size_t count = 12345, length = 12345;
  check::equal(loaded(nullptr, &count, nullptr, &length), HIPDNN_STATUS_BAD_PARAM_NULL_POINTER, "without a handle");
  check::equal(loaded(handle.get(), &count, nullptr, &length), HIPDNN_STATUS_SUCCESS);
  check::that(count < 1000 && length < 12345, "the number of plugins and the longest path are written");
  std::vector<std::vector<char>> paths(count, std::vector<char>(length + 8, '#'));
  std::vector<char*> buffers;
  for (auto& path : paths) buffers.push_back(path.data());
  const std::size_t expected = count, most = length;
  check::equal(loaded(handle.get(), &count, count == 0 ? nullptr : buffers.data(), &length), HIPDNN_STATUS_SUCCESS);
  check::equal(count, expected);
  for (const auto& path : paths) {
    const void* end = std::memchr(path.data(), '\0', most + 1);  // whether `most` counts the terminator is not said
    check::that(end != nullptr && path[0] != '\0', "a path, ended within the length that was told");
    check::equal(path.back(), '#', "bytes past the length");
  }
}

void test_profiling_measures_an_execution(const Library& library) {
  const Handle handle(library);
  const AddRelu model(library, handle);
  const Descriptor built = plan(library, model.graph);
  hipdnnBackendDescriptor_t raw = nullptr;
  library.allow_refusal(library.create_descriptor(HIPDNN_BACKEND_PROFILING_CONTROL_EXT, &raw), "PROFILING_CONTROL_EXT");
  Descriptor timer(library, raw);
  timer.handle(HIPDNN_ATTR_PROFILING_HANDLE_EXT, handle);
  float elapsed_ms = -1;
  std::int64_t actual = 0;
  check::equal(timer.get(HIPDNN_ATTR_PROFILING_ELAPSED_MS_EXT, HIPDNN_TYPE_FLOAT, 1, &actual, &elapsed_ms), HIPDNN_STATUS_NOT_INITIALIZED,
               "before finalize");
  timer.flag(HIPDNN_ATTR_PROFILING_START_EXT, true);
  check_add_relu(library, handle, built);
  timer.flag(HIPDNN_ATTR_PROFILING_STOP_EXT, true).finalize();
  check::equal(timer.get(HIPDNN_ATTR_PROFILING_ELAPSED_MS_EXT, HIPDNN_TYPE_FLOAT, 1, &actual, &elapsed_ms), HIPDNN_STATUS_SUCCESS);
  check::equal(actual, 1);
  check::that(std::isfinite(elapsed_ms) && elapsed_ms >= 0, "milliseconds, got " + std::to_string(elapsed_ms));
}

}  // namespace

void add_process_cases(check::Suite& suite, const Library& library) {
  suite.add("log: level is kept", [&] { test_log_level_is_kept(library); });
  suite.add("log: each callback gets messages until it is removed", [&] { test_each_log_callback_gets_messages_until_it_is_removed(library); });
  suite.add("version: has four parts", [&] { test_version_has_four_parts(library); });
  suite.add("plugin: paths of engines come too late for a handle", [&] { test_engine_plugin_paths_come_too_late_for_a_handle(library); });
  suite.add("plugin: paths of heuristics come too late for a handle", [&] { test_heuristic_plugin_paths_come_too_late_for_a_handle(library); });
  suite.add("plugin: loaded ones are listed in two calls", [&] { test_loaded_plugins_are_listed_in_two_calls(library); });
  suite.add("profiling: measures an execution", [&] { test_profiling_measures_an_execution(library); });
}

}  // namespace abi
