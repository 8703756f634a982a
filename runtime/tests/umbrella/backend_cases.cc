// The class behind the backend library, on fake providers.
#include <dlfcn.h>

#include <array>

#include "backend.h"
#include "cases.h"
#include "process.h"

namespace umbrella_tests {
namespace {

/// A backend on a library, and what it gave last.
class Subject {
 public:
  Subject(const Paths& paths, std::string library) : base_(open_onnxruntime(paths)), backend_(std::move(library)) {}

  /// The error, empty where there is none. One factory then is in `factory()`.
  std::string create(const char* wish, std::size_t capacity = 4) {
    factories_.fill(nullptr);
    count_ = capacity;
    return take_message(base_, backend_.create(wish, base_, nullptr, factories_.data(), capacity, &count_));
  }
  OrtEpFactory* factory() const { return factories_[0]; }
  void release(OrtEpFactory* factory) { check::equal(take_message(base_, backend_.release(factory)), std::string()); }

  void check_one(const std::string& message, const check::Location& at = check::Location::current()) const {
    check::equal(message, std::string(), "create failed:", at);
    check::equal(count_, 1U, "factories", at);
    check::equal(std::string(factory()->GetName(factory())), std::string("FakeExecutionProvider"), "name", at);
  }
  void check_nothing_given(const check::Location& at = check::Location::current()) const {
    check::equal(count_, 0U, "factories", at);
    for (const OrtEpFactory* factory : factories_) check::that(factory == nullptr, "a factory was left behind", at);
  }

 private:
  const OrtApiBase* base_;
  hipdnn_backend::Backend backend_;
  std::array<OrtEpFactory*, 4> factories_{};
  std::size_t count_ = 0;
};

int factories_alive(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  check::that(handle != nullptr, "the fake provider is not loaded");
  const int count = reinterpret_cast<int (*)()>(dlsym(handle, "FakeFactoriesAlive"))();
  dlclose(handle);
  return count;
}

void test_loads_on_first_and_unloads_after_last(const Paths& paths) {
  Subject subject(paths, paths.fake_provider);
  check::that(!is_loaded(paths.fake_provider), "loaded before anything was created");
  subject.check_one(subject.create("one"));
  OrtEpFactory* first = subject.factory();
  subject.check_one(subject.create("one"));
  OrtEpFactory* second = subject.factory();
  check::that(first != second, "one factory was given twice");
  subject.release(first);
  check::that(is_loaded(paths.fake_provider), "unloaded while a factory is alive");
  subject.release(second);
  check::that(!is_loaded(paths.fake_provider), "loaded after the last factory");
  subject.check_one(subject.create("one"));
  subject.release(subject.factory());
  check::that(!is_loaded(paths.fake_provider), "loaded after the last factory of a second time");
}

/// `wish` fails with `message`; before and after that a factory can be had.
void test_failure(const Paths& paths, const char* wish, const std::string& message) {
  Subject subject(paths, paths.fake_provider);
  check::contains(subject.create(wish), message);
  subject.check_nothing_given();
  check::that(!is_loaded(paths.fake_provider), "loaded after a failure");
  subject.check_one(subject.create("one"));
  OrtEpFactory* factory = subject.factory();
  check::contains(subject.create(wish), message);
  subject.check_nothing_given();
  check::equal(factories_alive(paths.fake_provider), 1, "factories alive after a failure");
  subject.release(factory);
  check::that(!is_loaded(paths.fake_provider), "a failure was counted as a factory");
}

void test_retry_when_the_library_was_missing(const Paths& paths) {
  const ort_tests::TemporaryFolder folder;
  const std::string library = (folder.path() / "libfake.so").string();
  Subject subject(paths, library);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const std::string message = subject.create("one");
    check::contains(message, library);
    check::contains(message, "put libhipdnn_ep.so beside libhipdnn-backend.so");
    subject.check_nothing_given();
  }
  std::filesystem::copy_file(paths.fake_provider, library);
  subject.check_one(subject.create("one"));
  subject.release(subject.factory());
  check::that(!is_loaded(library), "loaded after the last factory");
}

void test_library_that_is_no_provider(const Paths& paths) {
  Subject subject(paths, paths.no_provider);
  check::contains(subject.create("one"), "it is no execution provider");
  subject.check_nothing_given();
  check::that(!is_loaded(paths.no_provider), "loaded after a failure");
}

void test_release_of_nothing(const Paths& paths) {
  Subject subject(paths, paths.fake_provider);
  subject.release(nullptr);
  subject.check_one(subject.create("one"));
  OrtEpFactory* factory = subject.factory();
  subject.release(nullptr);
  check::that(is_loaded(paths.fake_provider), "releasing nothing was counted");
  subject.release(factory);
  check::that(!is_loaded(paths.fake_provider), "loaded after the last factory");
}

void test_threads(const Paths& paths) {
  const OrtApiBase* base = open_onnxruntime(paths);
  hipdnn_backend::Backend backend(paths.fake_provider);
  on_eight_threads([&](unsigned thread) {
    for (int i = 0; i < 300; ++i) {
      const bool fails = (static_cast<unsigned>(i) + thread) % 5 == 0;
      OrtEpFactory* factory = nullptr;
      std::size_t count = 0;
      const std::string message = take_message(base, backend.create(fails ? "refuse" : "one", base, nullptr, &factory, 1, &count));
      check::equal(message, std::string(fails ? "the fake provider refuses" : ""));
      if (fails) continue;
      // Code of the library: it has to be there.
      check::equal(std::string(factory->GetName(factory)), std::string("FakeExecutionProvider"));
      check::equal(take_message(base, backend.release(factory)), std::string());
    }
  });
  check::that(!is_loaded(paths.fake_provider), "loaded after the last factory");
}

}  // namespace

void add_backend_cases(check::Suite& suite, const Paths& paths) {
  suite.add("backend: loads on the first factory and unloads after the last", [&] { test_loads_on_first_and_unloads_after_last(paths); });
  suite.add("backend: counts nothing when the provider refuses", [&] { test_failure(paths, "refuse", "the fake provider refuses"); });
  suite.add("backend: releases the factory when the provider refuses late",
            [&] { test_failure(paths, "refuse_late", "the fake provider refuses"); });
  suite.add("backend: refuses when the provider gives two factories", [&] { test_failure(paths, "two", "gave no single factory"); });
  suite.add("backend: refuses when the provider gives no factory", [&] { test_failure(paths, "none", "gave no single factory"); });
  suite.add("backend: works when the library comes late", [&] { test_retry_when_the_library_was_missing(paths); });
  suite.add("backend: refuses when the library is no provider", [&] { test_library_that_is_no_provider(paths); });
  suite.add("backend: nothing happens when nothing is released", [&] { test_release_of_nothing(paths); });
  suite.add("backend: eight threads create and release", [&] { test_threads(paths); });
}

}  // namespace umbrella_tests
