// The child process that runs the cases, and what its parent makes of its end.
#include "survive.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>

namespace abi {
namespace {

constexpr int cannot_open = 2;

/// How the run stands, in memory that parent and child share: what the child has written is there after it has crashed.
struct Unmap {
  void operator()(check::Progress* progress) const { munmap(progress, sizeof *progress); }
};

std::unique_ptr<check::Progress, Unmap> shared_progress() {
  void* memory = mmap(nullptr, sizeof(check::Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error(std::string("mmap: ") + std::strerror(errno));
  return std::unique_ptr<check::Progress, Unmap>(new (memory) check::Progress{});
}

/// How a child ended, from what waitpid says.
std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status)) + ", " + strsignal(WTERMSIG(status));
  return "ended with exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

int run_surviving(const std::string& backend_path, const std::string& hip_path, const std::string& filter,
                  const std::function<void(check::Suite&, const Library&)>& add_cases) {
  const auto progress = shared_progress();
  while (!progress->is_finished) {
    const std::size_t first = progress->next;
    progress->is_in_case = false;
    std::fflush(stdout);
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
    if (child == 0) {
      try {
        const Library library(backend_path, hip_path);
        check::Suite suite;
        add_cases(suite, library);
        suite.run(filter, *progress);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "test_host_abi: %s\n", error.what());
        std::exit(cannot_open);
      }
      std::exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
      if (errno != EINTR) throw std::runtime_error(std::string("waitpid: ") + std::strerror(errno));
    }
    if (status == 0) continue;
    const bool was_begun = progress->next > first || progress->is_finished;
    if (!was_begun && progress->ran == 0) {
      if (WIFSIGNALED(status)) std::fprintf(stderr, "test_host_abi: opening %s: %s\n", backend_path.c_str(), describe_end(status).c_str());
      return cannot_open;
    }
    ++progress->failed;
    if (!progress->is_in_case) ++progress->ran;  // the end counts as a case of its own
    const std::string name = progress->is_in_case ? progress->name.data() : std::string("library: lives on after ") + progress->name.data();
    check::Suite::print("FAILED", name.c_str(), "the process " + describe_end(status));
    if (!was_begun) break;
  }
  return check::Suite::finish(*progress);
}

}  // namespace abi
