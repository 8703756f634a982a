// What libFuzzer does, for compilers without it, in the small: runs a target on files, then on mutations of them, drawn at random.
// TARGET [-runs=N] [-max_total_time=SECONDS] [-seed=N] FILE_OR_FOLDER...
// No coverage guides it. A crash leaves its input in crash-input in the working directory.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "storage/file_descriptor.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;
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

/// A number in the text becomes another: sizes, offsets and indices are what a hostile file lies in.
void replace_number(Bytes& bytes, std::mt19937& random) {
  constexpr std::array<std::string_view, 12> kNumbers{"0", "1", "2", "3", "7", "16", "64", "4096", "1048577", "2147483648", "4611686018427387904", "-1"};
  const auto is_digit = [&](std::size_t at) { return at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9'; };
  const auto begins = [&](std::size_t at) { return is_digit(at) && at > 0 && !is_digit(at - 1) && std::isalpha(bytes[at - 1]) == 0; };
  std::size_t begin = random() % bytes.size();
  while (begin < bytes.size() && !begins(begin)) ++begin;
  std::size_t end = begin;
  while (is_digit(end)) ++end;
  std::string number(kNumbers[random() % kNumbers.size()]);
  // Neighbours of a number get past more checks.
  if (random() % 2 == 0 && end - begin < 10) {
    const long near = std::atol(std::string(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.begin() + static_cast<std::ptrdiff_t>(end)).c_str());
    number = std::to_string(random() % 2 == 0 ? near + 1 : std::max(near - 1, 0L));
  }
  const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(begin);
  bytes.insert(bytes.erase(at, bytes.begin() + static_cast<std::ptrdiff_t>(end)), number.begin(), number.end());
}

/// The first 8 bytes of a program are the header's length, which holds again after a mutation of the header.
void mend_length(Bytes& bytes, std::size_t data_bytes) {
  constexpr std::size_t kLengthBytes = 8;
  const std::uint64_t length = bytes.size() - std::min<std::size_t>(bytes.size(), kLengthBytes + data_bytes);
  for (std::size_t i = 0; i < kLengthBytes && i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(length >> (8 * i));
}

/// What lies behind the header; nothing where the first bytes are no header's length.
std::optional<std::size_t> data_bytes_of(const Bytes& seed) {
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | (i < seed.size() ? seed[i] : 0);
  if (seed.size() < 8 || length > seed.size() - 8) return std::nullopt;
  return seed.size() - 8 - static_cast<std::size_t>(length);
}

Bytes mutated(const Bytes& seed, std::mt19937& random) {
  Bytes bytes = seed;
  for (auto edit = random() % 3 + 1; edit > 0 && !bytes.empty(); --edit) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 8) {
      case 0: bytes[at] ^= static_cast<std::uint8_t>(1U << random() % 8); break;
      case 1: bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at)); break;
      default: replace_number(bytes, random);
    }
  }
  const std::optional<std::size_t> data_bytes = data_bytes_of(seed);
  if (data_bytes && random() % 8 != 0) mend_length(bytes, *data_bytes);
  return bytes;
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
    runner.run(mutated(seeds[random() % seeds.size()], random));
  }
  std::printf("%zu inputs replayed, %ld mutations run\n", seeds.size(), count);
  return 0;
}
