#include "support/child_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "device/error.h"
#include "storage/file_descriptor.h"

namespace hipdnn_ep {
namespace {

constexpr std::array<std::pair<int, const char*>, 13> kSignalNames{{{SIGABRT, "SIGABRT"},
                                                                    {SIGBUS, "SIGBUS"},
                                                                    {SIGFPE, "SIGFPE"},
                                                                    {SIGHUP, "SIGHUP"},
                                                                    {SIGILL, "SIGILL"},
                                                                    {SIGINT, "SIGINT"},
                                                                    {SIGKILL, "SIGKILL"},
                                                                    {SIGPIPE, "SIGPIPE"},
                                                                    {SIGSEGV, "SIGSEGV"},
                                                                    {SIGSYS, "SIGSYS"},
                                                                    {SIGTERM, "SIGTERM"},
                                                                    {SIGTRAP, "SIGTRAP"},
                                                                    {SIGXCPU, "SIGXCPU"}}};

std::string describe_status(int status) {
  if (WIFEXITED(status)) return "ended with status " + std::to_string(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  for (const auto& [known, name] : kSignalNames) {
    if (known == number) return std::string("died of ") + name;
  }
  return "died of signal " + std::to_string(number);
}

/// Descriptors above `highest` that a new program would inherit. Other code of this process may open files without close-on-exec.
std::vector<int> inheritable_descriptors(int highest) {
  std::vector<int> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"), &closedir);
  while (const dirent* entry = directory ? readdir(directory.get()) : nullptr) {
    const std::string_view name(entry->d_name);
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    if (descriptor <= highest) continue;
    const int flags = fcntl(descriptor, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) found.push_back(descriptor);
  }
  return found;
}

void require(int error, const std::string& what) {
  if (error != 0) throw hipdnn_rt::Error(what + ": " + std::system_category().message(error));
}

/// What the child does with its descriptors before the program starts.
class FileActions {
 public:
  FileActions() { require(posix_spawn_file_actions_init(&raw_), "cannot prepare a process"); }
  ~FileActions() { posix_spawn_file_actions_destroy(&raw_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  void open_empty(int target) {
    require(posix_spawn_file_actions_addopen(&raw_, target, "/dev/null", O_RDONLY, 0), "cannot prepare a process");
  }
  void duplicate(int source, int target) {
    require(posix_spawn_file_actions_adddup2(&raw_, source, target), "cannot prepare a process");
  }
  /// A descriptor above a limit that was lowered since it was opened has no such action: the child keeps it.
  void close(int target) {
    const int error = posix_spawn_file_actions_addclose(&raw_, target);
    require(error == EBADF ? 0 : error, "cannot prepare a process");
  }
  const posix_spawn_file_actions_t* get() const { return &raw_; }

 private:
  posix_spawn_file_actions_t raw_;
};

/// A process group of its own, no blocked signals, default handling of all.
class Attributes {
 public:
  Attributes() {
    require(posix_spawnattr_init(&raw_), "cannot prepare a process");
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&raw_, &none);
    posix_spawnattr_setsigdefault(&raw_, &all);
    posix_spawnattr_setpgroup(&raw_, 0);
    posix_spawnattr_setflags(&raw_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Attributes() { posix_spawnattr_destroy(&raw_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &raw_; }

 private:
  posix_spawnattr_t raw_;
};

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// A copy that is out of the way of the descriptors being arranged: duplicating one onto its own number would keep it close-on-exec.
hipdnn_rt::FileDescriptor copy_above_channel(int descriptor) {
  hipdnn_rt::FileDescriptor copy(fcntl(descriptor, F_DUPFD_CLOEXEC, ChildProcess::kChannel + 1));
  require(copy.is_open() ? 0 : errno, "cannot duplicate a file descriptor");
  return copy;
}

}  // namespace

ChildProcess ChildProcess::start(const Command& command) {
  const hipdnn_rt::FileDescriptor output = copy_above_channel(command.output);
  const hipdnn_rt::FileDescriptor channel = copy_above_channel(command.channel);
  FileActions actions;
  actions.open_empty(STDIN_FILENO);
  actions.duplicate(output.get(), STDOUT_FILENO);
  actions.duplicate(output.get(), STDERR_FILENO);
  actions.duplicate(channel.get(), kChannel);
  for (const int descriptor : inheritable_descriptors(kChannel)) actions.close(descriptor);
  const Attributes attributes;
  const std::vector<char*> arguments = pointers_to(command.arguments);
  const std::vector<char*> environment = pointers_to(command.environment);
  pid_t pid = -1;
  require(posix_spawn(&pid, arguments.front(), actions.get(), attributes.get(), arguments.data(), environment.data()),
          "cannot start " + command.arguments.front());
  return ChildProcess(pid);
}

ChildProcess::ChildProcess(pid_t pid) : pid_(pid), parent_(getpid()) {}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && is_own()) stop(Clock::now());
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), parent_(other.parent_), ending_(std::move(other.ending_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(parent_, other.parent_);
  std::swap(ending_, other.ending_);
  return *this;
}

std::optional<std::string> ChildProcess::ending() {
  if (ending_) return ending_;
  siginfo_t info{};
  int result = -1;
  do {
    result = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  } while (result < 0 && errno == EINTR);
  if (result == 0 && info.si_pid == 0) return std::nullopt;
  // A host that ignores SIGCHLD, or waits for any child, takes the child's end away; its number may be another's by now.
  ending_ = result == 0 ? reap() : "ended";
  return ending_;
}

std::string ChildProcess::stop(Clock::time_point deadline) {
  using std::chrono::milliseconds;
  for (milliseconds pause(1); !ending() && Clock::now() < deadline; pause = std::min(2 * pause, milliseconds(20))) {
    std::this_thread::sleep_for(pause);
  }
  if (!ending()) {
    reap();
    ending_ = "was stopped";
  }
  return *ending_;
}

std::string ChildProcess::reap() {
  // Until it is reaped nobody else can have its number, so the group is still its own.
  kill(-pid_, SIGKILL);
  int status = 0;
  pid_t waited = -1;
  do {
    waited = waitpid(pid_, &status, 0);
  } while (waited < 0 && errno == EINTR);
  return waited == pid_ ? describe_status(status) : "ended";
}

}  // namespace hipdnn_ep
