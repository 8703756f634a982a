// What the cases share: folders that vanish, a package with the fake compiler, forked processes, and the environment put back.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "../check.h"
#include "../temporary_folder.h"
#include "support/compiler_service.h"

namespace support_tests {

/// The command line.
struct Tools {
  std::string python;
  std::string fake_server;
};

using ::TemporaryFolder;

/// A folder with a package hipdnn_mlir whose server is the fake one.
class FakePackage {
 public:
  explicit FakePackage(const Tools& tools, const std::string& version = std::string(hipdnn_ep::library_version()));
  std::string root() const { return folder_.path().string(); }
  std::filesystem::path inside(const std::string& name) const { return folder_.path() / "hipdnn_mlir" / name; }
  /// How many servers were started.
  std::size_t starts() const;

 private:
  TemporaryFolder folder_;
};

/// Sets a variable of the environment, or removes it, and puts it back at the end.
class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value);
  ~Variable();
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

void write_file(const std::filesystem::path& path, const std::string& text);
std::string read_file(const std::filesystem::path& path);
/// An executable shell script.
void write_script(const std::filesystem::path& path, const std::string& body);

/// Start `body` in a forked process, which ends with 0 where it returns, with 1 where it throws.
pid_t fork_to(const std::function<void()>& body);
/// Wait for a process; its exit status, or minus the signal it died of.
int wait_for(pid_t process);

/// Descriptors this process has open.
std::size_t open_descriptors();
/// Whether a process exists that is no zombie.
bool is_running(pid_t process);

/// Call `condition` until it holds, for a minute at most.
void wait_until(const std::function<bool()>& condition, std::string_view what, const check::Location& at = check::Location::current());

/// The CompilerError that `action` must throw.
template <typename Action>
hipdnn_ep::CompilerError compiler_error_of(const Action& action, const check::Location& at = check::Location::current()) {
  try {
    action();
  } catch (const hipdnn_ep::CompilerError& error) {
    check::that(std::string(error.what()).find('\n') == std::string::npos, "the message has several lines", at);
    return error;
  }
  throw check::Failure("no CompilerError", at);
}

}  // namespace support_tests
