// What libFuzzer does, for compilers without it, in the small: runs a target on files, then on mutations of them, drawn at random.
// TARGET [-runs=N] [-max_total_time=SECONDS] [-seed=N] FILE_OR_FOLDER...
// No coverage guides it. A crash leaves its input in crash-input in the working directory.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "mutations.h"
#include "storage/file_descriptor.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;
using fuzz::Bytes;
using Clock = std::chrono::steady_clock;

struct Options {
  long runs = -1;
  long seconds = 0;
  unsigned seed = 1;
  std::vector<fs::path> paths;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto number = [&](std::string_view name) { return std::atol(argument.c_str() + name.size()); };
    if (constexpr std::string_view name = "-runs="; argument.starts_with(name)) options.runs = number(name);
    else if (constexpr std::string_view name = "-max_total_time="; argument.starts_with(name)) options.seconds = number(name);
    else if (constexpr std::string_view name = "-seed="; argument.starts_with(name)) options.seed = static_cast<unsigned>(number(name));
    else if (!argument.starts_with("-")) options.paths.emplace_back(argument);
  }
  return options;
}

std::vector<Bytes> read_all(const std::vector<fs::path>& paths) {
  std::vector<Bytes> found;
  const auto add = [&](const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    found.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  };
  for (const fs::path& path : paths) {
    if (!fs::is_directory(path)) add(path);
    else for (const fs::directory_entry& entry : fs::directory_iterator(path)) add(entry.path());
  }
  std::ranges::sort(found);  // a folder has an order of its own on each machine
  return found;
}

/// Runs inputs, each of which a crash leaves behind in a file. It stays open: file systems write a file to the disk that is closed behind a
/// truncation, which took longer than the input.
class Runner {
 public:
  void run(const Bytes& bytes) const {
    if (pwrite(file_.get(), bytes.data(), bytes.size(), 0) < 0 || ftruncate(file_.get(), static_cast<off_t>(bytes.size())) != 0) std::abort();
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  ~Runner() { unlink(kPath); }

 private:
  static constexpr const char* kPath = "crash-input";
  hipdnn_rt::FileDescriptor file_{open(kPath, O_CREAT | O_WRONLY | O_TRUNC, 0600)};
};

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::vector<Bytes> seeds = read_all(options.paths);
  if (seeds.empty()) {
    std::fprintf(stderr, "usage: %s [-runs=N] [-max_total_time=SECONDS] [-seed=N] FILE_OR_FOLDER...\n", argv[0]);
    return 2;
  }
  const Runner runner;
  for (const Bytes& seed : seeds) runner.run(seed);
  std::mt19937 random(options.seed);
  const Clock::time_point end = Clock::now() + std::chrono::seconds(options.seconds);
  long count = 0;
  for (; (options.runs < 0 || count < options.runs) && (options.seconds == 0 ? options.runs > 0 : Clock::now() < end); ++count) {
    runner.run(fuzz::mutated(seeds[random() % seeds.size()], random));
  }
  std::printf("%zu inputs replayed, %ld mutations run\n", seeds.size(), count);
  return 0;
}
