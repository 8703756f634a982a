#include <dlfcn.h>

#include <latch>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "cases.h"

namespace umbrella_tests {

const OrtApiBase* open_onnxruntime(const Paths& paths) {
  void* library = dlopen(paths.onnxruntime.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return reinterpret_cast<decltype(&OrtGetApiBase)>(dlsym(library, "OrtGetApiBase"))();
}

bool is_loaded(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  dlclose(library);
  return true;
}

std::string take_message(const OrtApiBase* base, OrtStatus* status) {
  if (status == nullptr) return {};
  const OrtApi* api = base->GetApi(ORT_API_VERSION);
  std::string message = api->GetErrorMessage(status);
  api->ReleaseStatus(status);
  return message;
}

void on_eight_threads(const std::function<void(unsigned)>& body) {
  constexpr unsigned count = 8;
  std::latch start(count);
  std::mutex mutex;
  std::string failure;
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < count; ++thread) {
      threads.emplace_back([&, thread] {
        start.arrive_and_wait();
        try {
          body(thread);
        } catch (const std::exception& error) {
          const std::lock_guard lock(mutex);
          if (failure.empty()) failure = error.what();
        }
      });
    }
  }
  check::equal(failure, std::string(), "a thread failed:");
}

}  // namespace umbrella_tests
