// The compiler as a process: what it inherits, what is left of it, and who may end it.
#include <dlfcn.h>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <thread>

#include "cases.h"
#include "storage/file_descriptor.h"
#include "support/compiler_service.h"

namespace {
/// What starting a process fails with; 0 where it does not.
int spawn_error = 0;
}  // namespace

// Found before the C library's.
extern "C" int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
                           char* const arguments[], char* const environment[]) {
  if (spawn_error != 0) return spawn_error;
  using Spawn = decltype(&posix_spawn);
  return reinterpret_cast<Spawn>(dlsym(RTLD_NEXT, "posix_spawn"))(pid, path, actions, attributes, arguments, environment);
}

namespace support_tests {
namespace {

using hipdnn_ep::CompilerError;
using hipdnn_ep::CompilerOptions;
using hipdnn_ep::CompilerService;
using hipdnn_rt::FileDescriptor;
using nlohmann::json;

CompilerOptions options_for(const Tools& tools) {
  CompilerOptions options;
  options.python = tools.python;
  return options;
}

pid_t compiler_of(CompilerService& service, const CompilerOptions& options) {
  return service.request(options, {{"action", "echo"}}, {}).at("pid");
}

void test_nothing_inherited_when_the_host_has_files_open(const Tools& tools) {
  const FakePackage package(tools);
  CompilerService service(package.root());
  const FileDescriptor inheritable(open("/dev/zero", O_RDONLY));
  check::that((fcntl(inheritable.get(), F_GETFD) & FD_CLOEXEC) == 0, "the file would not be inherited anyway");
  const Variable search_path("PYTHONPATH", "/first:/second");
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto handler = std::signal(SIGTERM, SIG_IGN);
  const json seen = service.request(options_for(tools), {{"action", "surroundings"}}, {});
  std::signal(SIGTERM, handler);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);

  check::equal(seen.at("pythonpath"), json(package.root() + ":/first:/second"));
  check::equal(seen.at("safe_path"), json(true), "the working directory is searched for modules");
  check::equal(seen.at("group"), seen.at("pid"), "process group");
  check::equal(seen.at("termination"), json(true), "SIGTERM is handled by default");
  check::equal(seen.at("blocked"), json::array());
  const json& files = seen.at("files");
  check::equal(files.at("0"), json("/dev/null"));
  check::contains(files.at("1").get<std::string>(), "hipdnn-compiler-output");
  check::equal(files.at("2"), files.at("1"));
  check::contains(files.at("3").get<std::string>(), "socket:");
  check::equal(files.size(), std::size_t{4}, "open files: " + files.dump());
}

void test_started_when_a_file_is_open_above_the_limit(const Tools& tools) {
  const FakePackage package(tools);
  CompilerService service(package.root());
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const FileDescriptor high(fcntl(STDIN_FILENO, F_DUPFD, 400));
  check::that(high.is_open(), "no descriptor of this number");
  const rlimit lower{256, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &lower);
  const pid_t child = compiler_of(service, options_for(tools));
  setrlimit(RLIMIT_NOFILE, &before);
  check::that(child > 0, "no compiler");
}

void test_request_fails_when_no_process_can_be_made(const Tools& tools) {
  const FakePackage package(tools);
  CompilerService service(package.root());
  const CompilerOptions options = options_for(tools);
  compiler_of(service, options);  // loads what stays loaded
  for (const int error : {EAGAIN, ENOMEM}) {
    const pid_t last = compiler_of(service, options);
    kill(last, SIGKILL);
    wait_until([&] { return !is_running(last); }, "the compiler's end");
    const std::size_t before = open_descriptors();
    spawn_error = error;
    const CompilerError failure = compiler_error_of([&] { compiler_of(service, options); });
    spawn_error = 0;
    check::equal(failure.cause(), CompilerError::Cause::crashed);
    check::contains(failure.what(), "cannot start " + tools.python + ": " + std::system_category().message(error));
    check::that(open_descriptors() <= before, "a descriptor is left");
    check::that(service.availability(options).is_available(), "not asked again");
  }
}

void test_nothing_left_when_compilers_fail(const Tools& tools) {
  const std::size_t before = open_descriptors();
  {
    const FakePackage package(tools);
    CompilerService service(package.root());
    CompilerOptions options = options_for(tools);
    const auto fail = [&](const char* action) {
      compiler_error_of([&] { service.request(options, {{"action", action}}, std::array{STDIN_FILENO}); });
    };
    // The first request loads what stays loaded.
    compiler_of(service, options);
    const std::size_t running = open_descriptors();
    for (int i = 0; i < 3; ++i) {
      fail("crash");
      fail("exit");
      fail("garbage");
      fail("refuse");
      options.timeout = std::chrono::milliseconds(100);
      fail("hang");
      options.timeout = std::chrono::milliseconds(60'000);
    }
    compiler_of(service, options);
    check::equal(open_descriptors(), running, "descriptors after failures");
  }
  check::equal(open_descriptors(), before, "descriptors after the service's end");
  check::that(waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD, "a child is left");
}

void test_compiler_ends_when_the_service_ends(const Tools& tools) {
  const FakePackage package(tools);
  pid_t polite = -1;
  pid_t stubborn = -1;
  {
    CompilerService service(package.root());
    polite = compiler_of(service, options_for(tools));
  }
  check::that(kill(polite, 0) != 0, "the compiler outlives the service");
  {
    CompilerService service(package.root());
    stubborn = service.request(options_for(tools), {{"action", "stay"}}, {});
  }
  check::that(kill(stubborn, 0) != 0, "a compiler that ignores the end of its socket outlives the service");
}

void write_whole(const std::filesystem::path& path, const std::string& text) {
  const std::string part = path.string() + ".part";
  write_file(part, text);
  std::filesystem::rename(part, path);
}

void test_compiler_ends_when_the_host_dies(const Tools& tools) {
  const FakePackage package(tools);
  const TemporaryFolder folder;
  const auto pid_in = [&](const char* name) {
    wait_until([&] { return std::filesystem::exists(folder.path() / name); }, name);
    return std::stoi(read_file(folder.path() / name));
  };
  const pid_t host = fork_to([&] {
    CompilerService service(package.root());
    const pid_t compiler = compiler_of(service, options_for(tools));
    // A process that the host forked and that outlives it, having used the service itself.
    fork_to([&] {
      compiler_of(service, options_for(tools));
      write_whole(folder.path() / "heir", std::to_string(getpid()));
      pause();
    });
    write_whole(folder.path() / "compiler", std::to_string(compiler));
    pause();
  });
  const pid_t compiler = pid_in("compiler");
  const pid_t heir = pid_in("heir");
  check::that(is_running(compiler), "the compiler does not run");
  kill(host, SIGKILL);
  check::equal(wait_for(host), -SIGKILL);
  wait_until([&] { return !is_running(compiler); }, "the compiler's end");
  check::that(is_running(heir), "the forked process does not run");
  kill(heir, SIGKILL);
}

void test_own_compiler_when_forked(const Tools& tools) {
  const FakePackage package(tools);
  CompilerService service(package.root());
  const CompilerOptions options = options_for(tools);
  const pid_t owners = compiler_of(service, options);
  check::equal(wait_for(fork_to([&] {
                 const pid_t own = compiler_of(service, options);
                 check::that(own != owners, "the forked process talks to its parent's compiler");
                 check::equal(compiler_of(service, options), own, "the forked process's second request");
                 check::that(service.availability(options).is_available(), "not available");
                 service.~CompilerService();
                 check::that(kill(own, 0) != 0, "the forked process's compiler outlives its service");
                 check::that(is_running(owners), "the parent's compiler was ended");
               })),
               0);
  // One that never uses the service, and ends it.
  check::equal(wait_for(fork_to([&] { service.~CompilerService(); })), 0);
  check::equal(compiler_of(service, options), owners, "the parent's compiler after the fork");
}

void test_own_compiler_when_forked_during_a_request(const Tools& tools) {
  const FakePackage package(tools);
  CompilerService service(package.root());
  const CompilerOptions options = options_for(tools);
  const pid_t owners = compiler_of(service, options);
  std::jthread busy([&] {
    try {
      service.request(options, {{"action", "hang"}}, {});
    } catch (const CompilerError&) {
      // Its compiler is killed below.
    }
  });
  wait_until([&] { return std::filesystem::exists(package.inside("hangs")); }, "the other thread's turn");
  check::equal(wait_for(fork_to([&] {
                 check::that(compiler_of(service, options) != owners, "the forked process talks to its parent's compiler");
                 service.~CompilerService();
               })),
               0);
  check::that(is_running(owners), "the parent's compiler was ended");
  kill(owners, SIGKILL);
}

void test_ending_unknown_when_the_host_ignores_children(const Tools& tools) {
  const FakePackage package(tools);
  const auto handler = std::signal(SIGCHLD, SIG_IGN);
  std::string message;
  {
    CompilerService service(package.root());
    message = compiler_error_of([&] { service.request(options_for(tools), {{"action", "exit"}}, {}); }).what();
    compiler_of(service, options_for(tools));
  }
  std::signal(SIGCHLD, handler);
  check::contains(message, "ended before it answered");
}

}  // namespace

void add_process_cases(check::Suite& suite, const Tools& tools) {
  const auto add = [&](const char* name, void (*test)(const Tools&)) {
    suite.add(std::string("process: ") + name, [=] { test(tools); });
  };
  add("nothing inherited when the host has files open", test_nothing_inherited_when_the_host_has_files_open);
  add("started when a file is open above the limit", test_started_when_a_file_is_open_above_the_limit);
  add("request fails when no process can be made", test_request_fails_when_no_process_can_be_made);
  add("nothing left when compilers fail", test_nothing_left_when_compilers_fail);
  add("compiler ends when the service ends", test_compiler_ends_when_the_service_ends);
  add("compiler ends when the host dies", test_compiler_ends_when_the_host_dies);
  add("own compiler when forked", test_own_compiler_when_forked);
  add("own compiler when forked during a request", test_own_compiler_when_forked_during_a_request);
  add("ending unknown when the host ignores children", test_ending_unknown_when_the_host_ignores_children);
}

}  // namespace support_tests
