#include "fixtures.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

namespace support_tests {

namespace fs = std::filesystem;

FakePackage::FakePackage(const Tools& tools, const std::string& version) {
  fs::create_directories(inside("service"));
  write_file(inside("__init__.py"), "");
  write_file(inside("service/__init__.py"), "");
  write_file(inside("VERSION"), version);
  fs::copy_file(tools.fake_server, inside("service/server.py"));
}

std::size_t FakePackage::starts() const {
  const std::string log = read_file(inside("starts"));
  return static_cast<std::size_t>(std::count(log.begin(), log.end(), '\n'));
}

Variable::Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
  if (const char* before = std::getenv(name)) before_ = before;
  value ? setenv(name, value->c_str(), 1) : unsetenv(name);
}

Variable::~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

void write_file(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_script(const fs::path& path, const std::string& body) {
  write_file(path, "#!/bin/sh\n" + body + "\n");
  fs::permissions(path, fs::perms::owner_all);
}

pid_t fork_to(const std::function<void()>& body) {
  const pid_t process = fork();
  check::that(process >= 0, "fork");
  if (process > 0) return process;
  try {
    body();
    _exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "in a forked process: %s\n", error.what());
    _exit(1);
  }
}

int wait_for(pid_t process) {
  int status = 0;
  check::equal(waitpid(process, &status, 0), process, "waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

bool is_running(pid_t process) {
  const std::string status = read_file("/proc/" + std::to_string(process) + "/stat");
  const std::size_t end = status.rfind(')');
  return end != std::string::npos && status.at(end + 2) != 'Z';
}

void wait_until(const std::function<bool()>& condition, std::string_view what, const check::Location& at) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) throw check::Failure("never came: " + std::string(what), at);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace support_tests
