// An umbrella provider in ONNX Runtime that routes to libhipdnn-backend.so by its option `profile`.
#include <cstdlib>
#include <optional>

#include "cases.h"
#include "process.h"

namespace umbrella_tests {
namespace {

using ort_tests::DeviceKind;
using ort_tests::Session;
using ort_tests::SessionSettings;
using ort_tests::Tensor;

constexpr const char* kUmbrellaProvider = "AMDGPUExecutionProvider";
constexpr const char* kRoutedProvider = "HipDNNExecutionProvider";
constexpr const char* kOptionPrefix = "ep.hipdnnexecutionprovider.";
/// Where the umbrella looks for the backend library.
constexpr const char* kBackendVariable = "TEST_HIPDNN_BACKEND";

/// ONNX Runtime with the umbrella registered, which opens the backend in a folder.
class Umbrella {
 public:
  Umbrella(const Paths& paths, const std::filesystem::path& folder) : paths_(paths), provider_(folder / "libhipdnn_ep.so") {
    setenv(kBackendVariable, (folder / "libhipdnn-backend.so").c_str(), 1);
    runtime_.emplace(paths.onnxruntime, "umbrella", paths.umbrella, kUmbrellaProvider);
  }

  const ort_tests::Runtime& runtime() const { return *runtime_; }
  bool has_provider() const { return is_loaded(provider_); }

  /// The umbrella's option `profile` and the routed provider's own options, as an application passes both.
  SessionSettings settings(const std::string& profile) const {
    SessionSettings settings{paths_.models + "/convolution.onnx", DeviceKind::cpu, {{"profile", profile}}, {}};
    const std::map<std::string, std::string> routed{
        {"python", paths_.python}, {"cache_dir", (cache_.path() / "cache").string()}, {"strict", "1"}};
    for (const auto& [option, value] : routed) settings.entries.emplace(kOptionPrefix + option, value);
    return settings;
  }
  Tensor input() const { return {runtime(), {1, 3, 16, 16}, ort_tests::random_values(768, 1)}; }

  std::vector<float> run(const std::string& profile) const {
    const Session session(runtime(), settings(profile));
    check::equal(session.parts(kRoutedProvider).size(), 1U, "parts on the routed provider");
    return session.run(input());
  }
  std::string failure_of(const std::string& profile) const {
    try {
      run(profile);
      return {};
    } catch (const hipdnn_ep::OrtFailure& error) {
      return error.what();
    }
  }

 private:
  const Paths& paths_;
  const std::string provider_;
  ort_tests::TemporaryFolder cache_;
  std::optional<ort_tests::Runtime> runtime_;
};

void test_profiles(const Paths& paths) {
  const Umbrella umbrella(paths, paths.libraries);
  const SessionSettings own{paths.models + "/convolution.onnx", DeviceKind::none, {}, {}};
  const std::vector<float> expected = Session(umbrella.runtime(), own).run(umbrella.input());
  const std::vector<float> got = umbrella.run("llm");
  check::equal(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) check::near(got[i], expected[i], 1e-5, std::string("element ").append(std::to_string(i)));
  check::that(umbrella.run("3") == got, "profile 3 computes other numbers than profile llm");
  check::that(!umbrella.has_provider(), "the provider is loaded after the last session");
}

void test_wrong_profile(const Paths& paths) {
  const Umbrella umbrella(paths, paths.libraries);
  check::contains(umbrella.failure_of("vision"), "profile 'vision': the test umbrella knows 'llm' and '3'");
  check::that(!umbrella.has_provider(), "the provider is loaded after a failure");
  check::equal(umbrella.failure_of("llm"), std::string());
}

/// The routed provider refuses an option: its factory goes again.
void test_wrong_option(const Paths& paths) {
  const Umbrella umbrella(paths, paths.libraries);
  SessionSettings settings = umbrella.settings("llm");
  settings.entries.emplace(std::string(kOptionPrefix) + "colour", "red");
  std::string message;
  try {
    const Session session(umbrella.runtime(), settings);
  } catch (const hipdnn_ep::OrtFailure& error) {
    message = error.what();
  }
  check::contains(message, "unknown option 'colour'");
  check::that(!umbrella.has_provider(), "the provider is loaded after a failure");
}

void test_sessions_of_threads(const Paths& paths) {
  const Umbrella umbrella(paths, paths.libraries);
  const std::vector<float> expected = umbrella.run("llm");
  on_eight_threads([&](unsigned thread) {
    for (int i = 0; i < 10; ++i) check::that(umbrella.run(thread % 2 == 0 ? "llm" : "3") == expected, "a session computes other numbers");
  });
  check::that(!umbrella.has_provider(), "the provider is loaded after the last session");
}

void test_sessions_that_live_side_by_side(const Paths& paths) {
  const Umbrella umbrella(paths, paths.libraries);
  std::optional<Session> first(std::in_place, umbrella.runtime(), umbrella.settings("llm"));
  const Session second(umbrella.runtime(), umbrella.settings("3"));
  const std::vector<float> expected = first->run(umbrella.input());
  first.reset();
  check::that(umbrella.has_provider(), "the provider went with the first of two sessions");
  check::that(second.run(umbrella.input()) == expected, "a session computes other numbers after another went");
}

void test_sessions_when_the_provider_comes_late(const Paths& paths) {
  const ort_tests::TemporaryFolder folder;
  std::filesystem::copy_file(paths.libraries / "libhipdnn-backend.so", folder.path() / "libhipdnn-backend.so");
  const Umbrella umbrella(paths, folder.path());
  check::contains(umbrella.failure_of("llm"), "put libhipdnn_ep.so beside libhipdnn-backend.so");
  for (const char* name : {"libhipdnn_ep.so", "libhipdnn_host.so"}) {
    std::filesystem::create_symlink(paths.libraries / name, folder.path() / name);
  }
  check::equal(umbrella.failure_of("llm"), std::string());
}

}  // namespace

void add_session_cases(check::Suite& suite, const Paths& paths) {
  suite.add("sessions: profile llm and 3 compute what ONNX Runtime's CPU provider does", [&] { test_profiles(paths); });
  suite.add("sessions: refused when the profile is unknown", [&] { test_wrong_profile(paths); });
  suite.add("sessions: refused when an option of the routed provider is unknown", [&] { test_wrong_option(paths); });
  suite.add("sessions: made and destroyed by eight threads", [&] { test_sessions_of_threads(paths); });
  suite.add("sessions: one goes on when another goes", [&] { test_sessions_that_live_side_by_side(paths); });
  suite.add("sessions: work when the provider comes late", [&] { test_sessions_when_the_provider_comes_late(paths); });
}

}  // namespace umbrella_tests
