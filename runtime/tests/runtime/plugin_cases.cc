// What a hipDNN library is told of engine plugins and policies, and when.
#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <mutex>

#include "../temporary_folder.h"
#include "cases.h"
#include "device/error.h"
#include "execute/loaded_program.h"
#include "plan/proposals.h"
#include "sample_program.h"
#include "session.h"

namespace runtime_tests {
namespace {

using hipdnn_rt::Device;
using hipdnn_rt::DeviceEnvironment;
using hipdnn_rt::DeviceOptions;
using hipdnn_rt::InputError;
using hipdnn_rt::LoadedProgram;

std::string take_calls(const Libraries& libraries) {
  void* library = dlopen((libraries.recording + "/libhipdnn_backend.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto take = reinterpret_cast<void (*)(char*, std::size_t)>(dlsym(library, "recording_take_calls"));
  std::array<char, 4096> text{};
  take(text.data(), text.size());
  return text.data();
}

std::shared_ptr<const LoadedProgram> load(const Libraries& libraries, DeviceOptions options, hipdnn_rt::Log log = {}) {
  Sample sample = relu({2, 8});
  sample.program["target"] = "hip";
  options.threads = 1;
  options.compare_plans = false;
  const auto library = hipdnn_rt::Library::open("hip", libraries.recording);
  return LoadedProgram::load(std::make_shared<const Device>(library, std::move(options), DeviceEnvironment{.log = std::move(log)}), sample.parse());
}

std::string made(const TemporaryFolder& folder, const char* name) {
  const auto path = folder.path() / name;
  std::filesystem::create_directory(path);
  return path.string();
}

void test_plugins_told_once_when_sessions_share_them(const Libraries& libraries) {
  take_calls(libraries);
  const TemporaryFolder folder;
  const std::string one = made(folder, "one"), two = made(folder, "two");
  {
    const auto first = load(libraries, {.plugin_dirs = {one, two}});
    check::equal(take_calls(libraries), "additive " + one + " " + two + "\nrank\n");
    const std::vector<std::string> expected{"/opt/rocm/lib/hipdnn_plugins/engines/libown.so", one + "/libengine.so", two + "/libengine.so"};
    check::equal(first->device().plugins(), expected);
    load(libraries, {.autotune = 2, .plugin_dirs = {one, folder.path() / "one/../two"}});
    check::equal(take_calls(libraries), "rank\n", "the library has them, and would refuse to be told again");
    const std::string message =
        error_of<InputError>([&] { load(libraries, {.plugin_dirs = {one}, .plugin_mode = "absolute"}); });
    check::contains(message, "plugin_dirs: port 'hip' does not take them: hipdnnSetEnginePluginPaths_ext: HIPDNN_STATUS_NOT_SUPPORTED (8)");
    check::contains(message, "before the first session of a process");
  }
  take_calls(libraries);
  const auto other = load(libraries, {.plugin_dirs = {one}, .plugin_mode = "absolute"});
  check::equal(take_calls(libraries), "absolute " + one + "\nrank\n", "no session is left");
  check::equal(other->device().plugins(), std::vector<std::string>{one + "/libengine.so"});
  load(libraries, {});
  check::equal(take_calls(libraries), "rank\n", "without paths the library stays as it is");
}

void test_line_in_the_log_when_a_folder_brings_no_plugin(const Libraries& libraries) {
  const TemporaryFolder folder;
  const std::string empty = made(folder, "empty");
  std::string logged;
  load(libraries, {.plugin_dirs = {empty, made(folder, "full")}}, [&](hipdnnSeverity_t severity, const std::string& line) {
    if (severity == HIPDNN_SEV_WARN) logged += line + "\n";
  });
  check::equal(logged, "plugin_dirs: the library loads no engine plugin from " + empty + "; its own log says why\n");
}

void test_error_when_plugins_cannot_be_used(const Libraries& libraries) {
  const TemporaryFolder folder;
  check::contains(error_of<InputError>([&] { load(libraries, {.plugin_dirs = {folder.path() / "missing"}}); }),
                  "missing' does not exist: expected a folder or a file of engine plugins");
  const auto host = hipdnn_rt::Library::open("host", libraries.host);
  check::contains(error_of<InputError>([&] { const Device device(host, {.plugin_dirs = {folder.path()}}); }),
                  "plugin_dirs: port 'host' does not take them: hipdnnSetEnginePluginPaths_ext: HIPDNN_STATUS_NOT_SUPPORTED (8): "
                  "hipdnnSetEnginePluginPaths_ext: this library's engines are built in, it loads no plugins");
  check::contains(error_of<InputError>([&] { const Device device(host, {.plugin_dirs = {}, .plugin_mode = "absolute"}); }),
                  "plugin_mode = 'absolute': expected folders or files of engine plugins");
  check::that(open_host(libraries)->plugins().empty(), "the host library has none");
}

void test_policies_told_by_id_when_they_are_named(const Libraries& libraries) {
  take_calls(libraries);
  load(libraries, {.policies = {"TEST_ORDER", "TEST_RULES"}});
  // FNV-1a of the names, from another implementation.
  check::equal(take_calls(libraries), std::string("order 1\nrank\norder -4862615252909048506 -5167977725182332879\n"));
  check::contains(error_of<InputError>([&] { load(libraries, {.policies = {"TEST_ORDER", "TEST_OTHER"}}); }),
                  "policy 'TEST_OTHER' is unknown: port 'hip' has TEST_RULES, TEST_ORDER");
  const auto host = hipdnn_rt::Library::open("host", libraries.host);
  check::contains(error_of<InputError>([&] { const Device device(host, {.policies = {"TEST_ORDER"}}); }),
                  "policies: the hipDNN library of port 'host'");
}

void test_knobs_set_for_the_preferred_engine(const Libraries& libraries) {
  take_calls(libraries);
  const TemporaryFolder folder;
  const auto loaded = load(libraries, {.engine = "HOST_ROWWISE_ENGINE", .knobs = {{"TILE", "-64"}, {"RATE", "0.5"}, {"SOLVER", "Direct=1"}},
                                       .plan_cache = folder.path()});
  check::equal(take_calls(libraries), "knob TILE\ninteger -64\nknob RATE\nnumber 0.500000\nknob SOLVER\ntext Direct=1\nchoices\nrank\n");
  check::equal(loaded->plan(0)->engine_name(), "HOST_ROWWISE_ENGINE");
  load(libraries, {.engine = "HOST_ONEDNN_ENGINE", .knobs = {{"TILE", "64"}}});
  check::equal(take_calls(libraries), "rank\n", "the engine does not take the graph");
  check::contains(error_of<InputError>([&] { load(libraries, {.knobs = {{"TILE", "64"}}}); }), "knobs are set for one engine");
}

void test_line_in_the_log_when_the_engine_does_not_take_the_knobs(const Libraries& libraries) {
  std::string logged;
  const auto host = std::make_shared<const Device>(
      hipdnn_rt::Library::open("host", libraries.host), DeviceOptions{.engine = "HOST_ROWWISE_ENGINE", .knobs = {{"TILE", "64"}}},
      DeviceEnvironment{.log = [&](hipdnnSeverity_t severity, const std::string& line) {
        if (severity == HIPDNN_SEV_WARN) logged += line + "\n";
      }});
  check::equal(LoadedProgram::load(host, relu({2, 8}).parse())->plan(0)->engine_name(), "HOST_ROWWISE_ENGINE");
  check::contains(logged, "knobs of HOST_ROWWISE_ENGINE");
  check::contains(logged, "has no knob 'TILE'; the engine's own are used\n");
}

}  // namespace

void add_plugin_cases(check::Suite& suite, const Libraries& libraries) {
  const auto add = [&](const char* name, void (*body)(const Libraries&)) { suite.add(std::string("plugins: ") + name, [=] { body(libraries); }); };
  add("told once when sessions share them", test_plugins_told_once_when_sessions_share_them);
  add("line in the log when a folder brings no plugin", test_line_in_the_log_when_a_folder_brings_no_plugin);
  add("error when they cannot be used", test_error_when_plugins_cannot_be_used);
  add("policies told by id when they are named", test_policies_told_by_id_when_they_are_named);
  add("knobs set for the preferred engine", test_knobs_set_for_the_preferred_engine);
  add("line in the log when the engine does not take the knobs", test_line_in_the_log_when_the_engine_does_not_take_the_knobs);
}

}  // namespace runtime_tests
