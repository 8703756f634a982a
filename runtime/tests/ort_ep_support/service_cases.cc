// The compiler service: answers, refusals, and every way in which a compiler can fail to answer.
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <exception>
#include <thread>
#include <vector>

#include "cases.h"
#include "support/compiler_service.h"
#include "support/memory_file.h"

namespace support_tests {
namespace {

using hipdnn_ep::Availability;
using hipdnn_ep::CompilerError;
using hipdnn_ep::CompilerMode;
using hipdnn_ep::CompilerOptions;
using hipdnn_ep::CompilerService;
using hipdnn_ep::MemoryFile;
using nlohmann::json;
using std::chrono::milliseconds;
using Cause = CompilerError::Cause;

/// A service whose compiler is the fake one.
struct Setup {
  explicit Setup(const Tools& tools) : package(tools), service(package.root()) { options.python = tools.python; }

  json ask(const json& request, std::span<const int> descriptors = {}) { return service.request(options, request, descriptors); }
  CompilerError fail(const std::string& action, milliseconds timeout = milliseconds(600'000),
                     const check::Location& at = check::Location::current()) {
    options.timeout = timeout;
    CompilerError error = compiler_error_of([&] { ask({{"action", action}}); }, at);
    options.timeout = milliseconds(600'000);
    return error;
  }
  pid_t pid() { return ask({{"action", "echo"}}).at("pid"); }

  FakePackage package;
  CompilerOptions options;
  CompilerService service;
};

MemoryFile file_with(const std::string& text) {
  MemoryFile file("test");
  file.set_size(text.size());
  check::equal(pwrite(file.fd(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  return file;
}

void test_available_when_the_package_is_there(const Tools& tools) {
  Setup setup(tools);
  for (const CompilerMode mode : {CompilerMode::automatic, CompilerMode::subprocess}) {
    setup.options.mode = mode;
    const Availability found = setup.service.availability(setup.options);
    check::that(found.is_available() && found.mode == CompilerMode::subprocess, found.description);
    check::equal(found.description, "subprocess " + tools.python);
  }
  setup.service.availability(setup.options);
  setup.pid();
  check::equal(setup.package.starts(), std::size_t{1}, "servers started");
}

void test_files_and_text_arrive_when_requested(const Tools& tools) {
  Setup setup(tools);
  const MemoryFile model = file_with("the model's bytes");
  const MemoryFile output = file_with("nothing yet");
  const json payload = {{"shape", {1, 2, 3}}, {"name", "\u00e4\u4e2d \"quoted\" \n line"}, {"none", nullptr}};
  const std::vector<int> descriptors{model.fd(), output.fd()};
  const json result = setup.ask({{"action", "echo"}, {"payload", payload}, {"write", "the program"}}, descriptors);
  check::equal(result.at("payload"), payload);
  check::equal(result.at("contents"), json::array({"the model's bytes", "nothing yet"}));
  std::string written(11, ' ');
  check::equal(pread(output.fd(), written.data(), written.size(), 0), ssize_t{11});
  check::equal(written, std::string("the program"));
}

void test_whole_when_messages_are_large(const Tools& tools) {
  Setup setup(tools);
  const std::string payload(8U << 20, 'p');
  const MemoryFile file = file_with("still there");
  const json result = setup.ask({{"action", "echo"}, {"payload", payload}}, std::array{file.fd()});
  check::that(result.at("payload") == payload, "a large request came back changed");
  check::equal(result.at("contents"), json::array({"still there"}));
  const std::string blob = setup.ask({{"action", "blob"}, {"bytes", 30U << 20}});
  check::that(blob == std::string(30U << 20, 'b'), "a large reply came changed");
}

void test_refused_when_the_request_cannot_be_sent(const Tools& tools) {
  Setup setup(tools);
  const pid_t before = setup.pid();
  const auto refuse = [&](const json& request, const std::vector<int>& descriptors, const char* expected) {
    const CompilerError error = compiler_error_of([&] { setup.ask(request, descriptors); });
    check::equal(error.cause(), Cause::refused);
    check::contains(error.what(), expected);
  };
  refuse({{"action", "echo"}, {"payload", "\xff"}}, {}, "is not UTF-8 text");
  refuse({{"action", "echo"}, {"payload", std::string(65U << 20, 'p')}}, {}, "at most 67108864");
  refuse({{"action", "echo"}}, std::vector<int>(9, STDIN_FILENO), "at most 8 files");
  check::equal(setup.pid(), before, "the compiler after requests that were not sent");
}

void test_own_error_passed_on_when_the_compiler_refuses(const Tools& tools) {
  Setup setup(tools);
  const pid_t before = setup.pid();
  const CompilerError error = setup.fail("refuse");
  check::equal(error.cause(), Cause::refused);
  check::equal(error.what(), std::string("model.onnx: no such node"));
  check::equal(error.kind(), std::string("ModelError"));
  check::equal(error.detail(), std::string("line 1\nline 2"));
  check::equal(setup.pid(), before, "the compiler after its own error");
}

/// A failure, after which the old compiler is gone for good and a new one answers.
void check_failure(Setup& setup, const std::string& action, Cause cause, const std::string& expected,
                   milliseconds timeout = milliseconds(600'000), const check::Location& at = check::Location::current()) {
  const pid_t before = setup.pid();
  const CompilerError error = setup.fail(action, timeout, at);
  check::equal(error.cause(), cause, action, at);
  check::contains(error.what(), expected, at);
  check::contains(error.what(), setup.options.python, at);
  check::equal(error.kind(), std::string(), action, at);
  check::that(kill(before, 0) != 0 && errno == ESRCH, "the old compiler still exists after " + action, at);
  check::that(setup.pid() != before, "the dead compiler answered after " + action, at);
}

void test_started_again_when_the_compiler_dies(const Tools& tools) {
  Setup setup(tools);
  check_failure(setup, "crash", Cause::crashed, "died of SIGSEGV before it answered; the next request starts a new one; it printed: ");
  const CompilerError error = setup.fail("crash");
  check::equal(error.detail().size(), std::size_t{1999}, "last words without the line's end");
  check::that(error.detail().ends_with("xxx last words of the compiler"), error.detail());
  setup.ask({{"action", "chat"}});
  check::equal(setup.fail("exit").detail(), std::string(), "what was printed before the request");
  check_failure(setup, "exit", Cause::crashed, "ended with status 7 before it answered; the next request starts a new one");
  check_failure(setup, "half", Cause::crashed, "ended with status 0 before it answered");
  check_failure(setup, "crash_with_heir", Cause::crashed, "died of SIGSEGV before it answered");
  const pid_t heir = std::stoi(read_file(setup.package.inside("heir")));
  wait_until([&] { return !is_running(heir); }, "the end of what the compiler had started");
}

void test_stopped_when_the_compiler_talks_nonsense(const Tools& tools) {
  Setup setup(tools);
  check_failure(setup, "garbage", Cause::crashed, "sent a reply that is neither a result nor an error and was stopped");
  check_failure(setup, "list", Cause::crashed, "sent a reply that is neither");
  check_failure(setup, "neither", Cause::crashed, "sent a reply that is neither");
  check_failure(setup, "endless", Cause::crashed, "sent a reply of 4294967295 bytes and was stopped");
  check_failure(setup, "close", Cause::crashed, "was stopped before it answered");
}

void test_stopped_when_the_compiler_hangs(const Tools& tools) {
  Setup setup(tools);
  check_failure(setup, "hang", Cause::timed_out, "gave no answer within 300 ms and was stopped; give it more time", milliseconds(300));
}

void test_no_signal_when_the_compiler_dies_during_a_request(const Tools& tools) {
  Setup setup(tools);
  setup.ask({{"action", "turn_deaf"}});
  // More than a socket holds, so that the rest meets a closed one. SIGPIPE would end this process.
  const CompilerError error = compiler_error_of([&] { setup.ask({{"action", "echo"}, {"payload", std::string(8U << 20, 'p')}}); });
  check::equal(error.cause(), Cause::crashed);
  check::contains(error.what(), "ended with status 3 before it answered");
}

void test_no_request_lost_when_the_compiler_dies_idle(const Tools& tools) {
  Setup setup(tools);
  const pid_t before = setup.pid();
  kill(before, SIGKILL);
  wait_until([&] { return !is_running(before); }, "the compiler's end");
  check::that(setup.pid() != before, "the dead compiler answered");
}

void test_every_thread_gets_its_own_answer_when_requests_are_concurrent(const Tools& tools) {
  Setup setup(tools);
  constexpr int kThreads = 8;
  std::atomic<int> answers = 0;
  std::vector<std::exception_ptr> failures(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        try {
          check::that(setup.service.availability(setup.options).is_available(), "not available");
          for (int i = 0; i < 20; ++i) {
            const MemoryFile file = file_with("file " + std::to_string(t));
            const json payload = {t, i};
            const json result = setup.ask({{"action", "echo"}, {"payload", payload}}, std::array{file.fd()});
            check::equal(result.at("payload"), payload);
            check::equal(result.at("contents").at(0), json("file " + std::to_string(t)));
            ++answers;
          }
        } catch (...) {
          failures[static_cast<std::size_t>(t)] = std::current_exception();
        }
      });
    }
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  check::equal(answers.load(), kThreads * 20);
  check::equal(setup.package.starts(), std::size_t{1}, "servers started");
}

void test_timed_out_when_the_compiler_is_busy(const Tools& tools) {
  Setup setup(tools);
  const pid_t before = setup.pid();
  CompilerOptions patient = setup.options;
  std::atomic<bool> is_over = false;
  std::jthread other([&] {
    patient.timeout = milliseconds(60'000);
    try {
      setup.service.request(patient, {{"action", "hang"}}, {});
    } catch (const CompilerError&) {
      // Its compiler is killed below.
    }
    is_over = true;
  });
  wait_until([&] { return std::filesystem::exists(setup.package.inside("hangs")); }, "the other thread's turn");
  const CompilerError error = setup.fail("echo", milliseconds(50));
  check::equal(error.cause(), Cause::timed_out);
  check::contains(error.what(), "was busy with other models for 50 ms; give it more time");
  check::that(!is_over && is_running(before), "waiting in vain disturbed the compiler at work");
  kill(before, SIGKILL);
}

void test_unavailable_when_the_package_is_not_fit(const Tools& tools) {
  const FakePackage old(tools, "0.0.9");
  const TemporaryFolder empty;
  const auto unavailable = [&](const std::string& root, const std::string& python, CompilerMode mode = CompilerMode::automatic) {
    CompilerService service(root);
    CompilerOptions options;
    options.python = python;
    options.mode = mode;
    const Availability found = service.availability(options);
    check::that(!found.is_available(), found.description);
    check::equal(service.availability(options).description, found.description, "asked again");
    const CompilerError error = compiler_error_of([&] { service.request(options, {{"action", "echo"}}, {}); });
    check::equal(error.cause(), Cause::unavailable);
    check::contains(error.what(), found.description);
    return found.description;
  };
  check::equal(unavailable(old.root(), tools.python), tools.python + " has hipdnn_mlir 0.0.9, this library needs " +
                                                          std::string(hipdnn_ep::library_version()) + ": pip install hipdnn-mlir==" +
                                                          std::string(hipdnn_ep::library_version()) + " there, or set the option python");
  check::contains(unavailable(old.root(), "/none"), "option python: '/none' is not a program");
  check::equal(unavailable(old.root(), tools.python, CompilerMode::none), std::string("the option compiler is none"));
  check::contains(unavailable(old.root(), tools.python, CompilerMode::inprocess), "no Python runs in this process");
  write_script(empty.path() / "python3", "echo \"$0: No module named hipdnn_mlir\" >&2; echo >>" + (empty.path() / "runs").string() + "; exit 1");
  check::contains(unavailable("", (empty.path() / "python3").string()), "has no hipdnn_mlir: pip install hipdnn-mlir there, or set the option python");
  check::equal(read_file(empty.path() / "runs"), std::string("\n\n"), "starts for a remembered reason and a request");
  write_script(empty.path() / "python3", "echo Unknown option: -P >&2; exit 2");
  check::contains(unavailable("", (empty.path() / "python3").string()), "is older than Python 3.11: set the option python");
}

void test_found_again_when_a_start_failed(const Tools& tools) {
  Setup setup(tools);
  write_file(setup.package.inside("broken"), "cannot import something");
  const Availability broken = setup.service.availability(setup.options);
  check::that(!broken.is_available(), "available while broken");
  check::contains(broken.description, "ended with status 1 before it answered");
  check::contains(broken.description, "cannot import something");
  std::filesystem::remove(setup.package.inside("broken"));
  check::that(setup.service.availability(setup.options).is_available(), "a failed start is held against the compiler for ever");
}

}  // namespace

void add_service_cases(check::Suite& suite, const Tools& tools) {
  const auto add = [&](const char* name, void (*test)(const Tools&)) {
    suite.add(std::string("service: ") + name, [=] { test(tools); });
  };
  add("available when the package is there", test_available_when_the_package_is_there);
  add("files and text arrive when requested", test_files_and_text_arrive_when_requested);
  add("whole when messages are large", test_whole_when_messages_are_large);
  add("refused when the request cannot be sent", test_refused_when_the_request_cannot_be_sent);
  add("own error passed on when the compiler refuses", test_own_error_passed_on_when_the_compiler_refuses);
  add("started again when the compiler dies", test_started_again_when_the_compiler_dies);
  add("stopped when the compiler talks nonsense", test_stopped_when_the_compiler_talks_nonsense);
  add("stopped when the compiler hangs", test_stopped_when_the_compiler_hangs);
  add("no signal when the compiler dies during a request", test_no_signal_when_the_compiler_dies_during_a_request);
  add("no request lost when the compiler dies idle", test_no_request_lost_when_the_compiler_dies_idle);
  add("every thread gets its own answer when requests are concurrent", test_every_thread_gets_its_own_answer_when_requests_are_concurrent);
  add("timed out when the compiler is busy", test_timed_out_when_the_compiler_is_busy);
  add("unavailable when the package is not fit", test_unavailable_when_the_package_is_not_fit);
  add("found again when a start failed", test_found_again_when_a_start_failed);
}

}  // namespace support_tests
