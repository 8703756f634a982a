// fault_test HOST_FOLDER DISGUISED_FOLDER DEFERRED_FOLDER CHOOSING_FOLDER [FILTER]: the N-th call fails, or all from there on, for N = 1, 2, ...
// An error comes of it or nothing, whatever was running can be used afterwards, nothing is half written, and no descriptor is left open.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <optional>

#include "../temporary_folder.h"
#include "deferred_port.h"
#include "device/error.h"
#include "faults.h"
#include "session.h"
#include "storage/disk_cache.h"
#include "storage/mapped_file.h"

using faults::Kind;
using faults::plan;

#define EXPORTED __attribute__((visibility("default"), noinline))

// The executable exports these, so that every library of the process binds to them.
EXPORTED void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return plan.strikes(Kind::memory, "operator new") ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
EXPORTED void* operator new(std::size_t bytes) {
  void* pointer = operator new(bytes, std::nothrow);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}
EXPORTED void operator delete(void* pointer) noexcept { std::free(pointer); }
EXPORTED void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }

namespace {

/// The function of the next library under a name, unless the plan strikes.
template <class Function>
Function* next(const char* name, int error) {
  if (plan.strikes(Kind::system, name)) {
    errno = error;
    return nullptr;
  }
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
EXPORTED int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = va_arg(arguments, mode_t);
  va_end(arguments);
  auto* found = next<int(const char*, int, ...)>("open", EMFILE);
  return found == nullptr ? -1 : found(path, flags, mode);
}
EXPORTED int mkostemp(char* path, int flags) {
  auto* found = next<int(char*, int)>("mkostemp", EMFILE);
  return found == nullptr ? -1 : found(path, flags);
}
EXPORTED int fstat(int file, struct stat* status) noexcept {
  auto* found = next<int(int, struct stat*)>("fstat", EIO);
  return found == nullptr ? -1 : found(file, status);
}
EXPORTED int fchmod(int file, mode_t mode) noexcept {
  auto* found = next<int(int, mode_t)>("fchmod", EIO);
  return found == nullptr ? -1 : found(file, mode);
}
EXPORTED int mkdir(const char* path, mode_t mode) noexcept {
  auto* found = next<int(const char*, mode_t)>("mkdir", ENOSPC);
  return found == nullptr ? -1 : found(path, mode);
}
EXPORTED ssize_t write(int file, const void* bytes, std::size_t count) {
  auto* found = next<ssize_t(int, const void*, std::size_t)>("write", ENOSPC);
  return found == nullptr ? -1 : found(file, bytes, count);
}
EXPORTED int rename(const char* from, const char* to) noexcept {
  auto* found = next<int(const char*, const char*)>("rename", ENOSPC);
  return found == nullptr ? -1 : found(from, to);
}
EXPORTED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) noexcept {
  if (plan.strikes(Kind::thread, "pthread_create")) return EAGAIN;
  return next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create", 0)(thread, attributes, start, argument);
}
EXPORTED void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  auto* found = next<void*(void*, std::size_t, int, int, int, off_t)>("mmap", ENOMEM);
  return found == nullptr ? MAP_FAILED : found(address, bytes, protection, flags, file, offset);
}
}

namespace {

using namespace runtime_tests;
using hipdnn_rt::Device;
using hipdnn_rt::DeviceOptions;
using hipdnn_rt::DiskCache;
using hipdnn_rt::Library;

/// UndefinedBehaviorSanitizer, which comes with it, ends the process in libstdc++ 12 where a variant's copy finds no memory.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

/// All calls up to here fail one by one, then one in so many.
constexpr long kEach = 300, kOneIn = 16;

long after(long number) { return number + 1 + std::max(0L, number - kEach) / kOneIn; }

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}

/// Run `attempt` with the first call failing, the second, ..., as long as there is one; with those behind it where the fault lasts.
template <class Attempt>
void strike_each(Kind kind, const Attempt& attempt, bool lasts = false, const check::Location& at = check::Location::current()) {
  attempt();  // loads what stays loaded
  const std::size_t descriptors = open_descriptors();
  bool has_struck = false;
  for (long number = 1;; number = after(number)) {
    plan.arm(kind, number, lasts);
    attempt();
    const char* struck = plan.struck;
    if (struck == nullptr) break;
    has_struck = true;
    check::equal(open_descriptors(), descriptors, "open files after call " + std::to_string(number) + ", " + struck, at);
  }
  check::that(has_struck, "no call could fail", at);
}

/// Have calls fail in `action`, which may throw an error of the runtime or a lack of memory, nothing else; whether it threw.
template <class Action>
bool fails(const Action& action) {
  bool has_failed = false;
  plan.is_on = true;
  try {
    action();
  } catch (const hipdnn_rt::Error&) {
    has_failed = true;
  } catch (const std::bad_alloc&) {
    has_failed = true;
  }
  plan.is_on = false;
  return has_failed;
}

/// A port, and a program for it.
struct Subject {
  const char* port;
  std::string folder;
  DeviceOptions options;
  Sample sample;
  std::string reference = {};
};

/// Open a device, load a program and run it; each may fail, and then works again.
void load_and_run(const Subject& subject) {
  const auto program = subject.sample.parse();
  const std::vector<float> x = random_values(program->inputs().at(0).bytes / sizeof(float), 1);
  const auto run = [&](hipdnn_rt::ContextPool& pool) { return run_once(pool, *program, {x}); };
  const auto library = Library::open(subject.port, subject.folder);
  faults::install_all(*library);
  std::optional<hipdnn_rt::ContextPool> pool;
  const auto load = [&] {
    const auto device = std::make_shared<const Device>(library, subject.options, hipdnn_rt::DeviceEnvironment{.reference_directory = subject.reference});
    pool.emplace(hipdnn_rt::LoadedProgram::load(device, program));
  };
  std::vector<std::vector<float>> results;
  const auto run_twice = [&] {
    for (int i = 0; i < 2; ++i) results.push_back(run(*pool));
  };
  const bool is_loaded = !fails(load);
  if (is_loaded) fails(run_twice);
  if (!is_loaded) load();
  run_twice();
  for (const std::vector<float>& result : results) check::that(result == results.back(), "a run beside a fault has another result");
}

Sample for_hip(Sample sample) {
  sample.program["target"] = "hip";
  return sample;
}

void test_port(const Subject& subject) {
  strike_each(Kind::port, [&] { load_and_run(subject); });
}

/// A device that is lost in the middle, and is there again for what comes next.
void test_lost_device(const Subject& subject) {
  void* const port = dlopen((subject.folder + "/libhipdnn_backend.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  check::that(port != nullptr, "the port can be opened");
  plan.on_loss = reinterpret_cast<deferred_lose_t>(dlsym(port, "deferred_lose"));  // of the port that has streams of its own
  strike_each(Kind::port, [&] { load_and_run(subject); }, true);
  plan.on_loss = nullptr;
  dlclose(port);
}

void test_memory(const Subject& subject) {
  strike_each(Kind::memory, [&] { load_and_run(subject); });
}

/// Before anything else: the library keeps the threads that it has made.
void test_threads(const std::string& host) {
  for (int threads = 2; threads <= 4; ++threads) {
    plan.arm(Kind::thread, 1);
    load_and_run({"host", host, {.threads = threads}, threads % 2 == 0 ? relu({64, 4096}) : one_convolution(32, 28)});
    check::that(plan.struck != nullptr, "no thread was made");
  }
}

void test_program_file(const std::string& host) {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "m.hipdnn";
  const std::vector<std::byte> bytes = two_convolutions(4, 5, false).container();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  strike_each(Kind::system, [&] {
    const auto load = [&] {
      const auto file = std::make_shared<const hipdnn_rt::MappedFile>(path);
      const auto program = hipdnn_rt::DynamicProgram::parse_container(file->bytes(), file)->at({});
      hipdnn_rt::ContextPool pool(hipdnn_rt::LoadedProgram::load(open_host({host, "", ""}), program));
      run_once(pool, *program, {random_values(program->inputs().at(0).bytes / sizeof(float), 1)});
    };
    fails(load);
    load();
  });
}

void test_cache() {
  const std::string key(64, 'a');
  const std::vector<std::byte> entry(10'000, std::byte{7});
  strike_each(Kind::system, [&] {
    const TemporaryFolder folder;
    const std::filesystem::path directory = folder.path() / "made" / "cache";
    const DiskCache cache(directory, 1 << 20);
    const auto store = [&] { static_cast<void>(cache.store(key, "bin", entry)); };
    const auto find = [&] {
      const std::optional<std::string> found = cache.find(key, "bin");
      if (found) check::equal(std::filesystem::file_size(*found), entry.size(), "bytes of an entry");
      return found.has_value();
    };
    fails(store);
    fails(find);
    if (std::filesystem::exists(directory)) {
      for (const auto& file : std::filesystem::directory_iterator(directory)) {
        check::equal(file.path().filename().string(), key + ".bin", "what is left in the cache");
      }
    }
    store();
    check::that(find(), "an entry is not found that was stored after a fault");
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: %s HOST_FOLDER DISGUISED_FOLDER DEFERRED_FOLDER CHOOSING_FOLDER [FILTER]\n", argv[0]);
    return 2;
  }
  const std::string host = argv[1];
  const TemporaryFolder plans;
  const Sample sums = doubled_rows(8, 4, {1, 0, 3});
  const std::vector<std::pair<std::string, Subject>> subjects{
      {"the host", {"host", host, {.threads = 1}, two_convolutions(4, 5, false)}},
      {"the host's kernels", {"host", host, {.threads = 2}, sums}},
      {"a device", {"hip", argv[2], {.threads = 1, .compare_plans = false}, for_hip(two_convolutions(4, 5, false))}},
      {"recorded graphs", {"hip", argv[3], {.threads = 1, .graph_capture = true, .compare_plans = false}, for_hip(relu({4, 4}))}},
      {"plans that are chosen and kept",
       {"hip", argv[4], {.threads = 1, .autotune = 2, .plan_cache = plans.path() / "plans"}, for_hip(relu({2, 8})), host}},
  };
  check::Suite suite;
  suite.add("faults: threads", [=] { test_threads(host); });
  for (const auto& [name, subject] : subjects) suite.add("faults: a port's calls, " + name, [=] { test_port(subject); });
  for (const std::size_t i : {2U, 3U, 4U}) suite.add("faults: a lost device, " + subjects[i].first, [=] { test_lost_device(subjects[i].second); });
  // The others read JSON, which nlohmann's destructors free with memory of their own.
  for (const std::size_t i : {0U, 2U, 3U}) {
    if (!kIsSanitized) suite.add("faults: memory, " + subjects[i].first, [=] { test_memory(subjects[i].second); });
  }
  suite.add("faults: system calls, a program file", [=] { test_program_file(host); });
  suite.add("faults: system calls, the cache", [] { test_cache(); });
  return suite.run(argc > 5 ? argv[5] : "");
}
