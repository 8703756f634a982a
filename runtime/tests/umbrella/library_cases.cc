// libhipdnn-backend.so as an umbrella opens it, with the hipDNN provider beside it.
#include <dlfcn.h>

#include "cases.h"
#include "process.h"

namespace umbrella_tests {
namespace {

constexpr const char* kBackend = "libhipdnn-backend.so";
constexpr const char* kProvider = "libhipdnn_ep.so";

/// The backend library in a folder, opened.
class Library {
 public:
  Library(const Paths& paths, const std::filesystem::path& folder)
      : base_(open_onnxruntime(paths)), handle_(dlopen((folder / kBackend).c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
    create_ = reinterpret_cast<decltype(create_)>(dlsym(handle_, "CreateEpFactories"));
    release_ = reinterpret_cast<decltype(release_)>(dlsym(handle_, "ReleaseEpFactory"));
  }
  ~Library() { dlclose(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Throws with the library's message.
  OrtEpFactory* create(std::size_t capacity = 1, const char* registration = "tests") const {
    OrtEpFactory* factory = nullptr;
    std::size_t count = 0;
    const std::string message = take_message(base_, create_(registration, base_, nullptr, &factory, capacity, &count));
    if (!message.empty()) throw std::runtime_error(message);
    check::equal(count, 1U, "factories");
    return factory;
  }
  const OrtApi& api() const { return *base_->GetApi(ORT_API_VERSION); }
  void succeed(OrtStatus* status, const check::Location& at = check::Location::current()) const {
    check::equal(take_message(base_, status), std::string(), "failed:", at);
  }
  void release(OrtEpFactory* factory) const { check::equal(take_message(base_, release_(factory)), std::string()); }

 private:
  const OrtApiBase* base_;
  void* handle_;
  OrtStatus* (*create_)(const char*, const OrtApiBase*, const OrtLogger*, OrtEpFactory**, std::size_t, std::size_t*) = nullptr;
  OrtStatus* (*release_)(OrtEpFactory*) = nullptr;
};

std::string failure_of(const Library& library, std::size_t capacity = 1) {
  try {
    library.release(library.create(capacity));
    return {};
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

void check_provider(OrtEpFactory* factory) {
  check::equal(std::string(factory->GetName(factory)), std::string("HipDNNExecutionProvider"));
  check::equal(std::string(factory->GetVendor(factory)), std::string("AMD"));
}

void test_factories_in_turn(const Paths& paths) {
  const std::string provider = paths.libraries / kProvider;
  const Library library(paths, paths.libraries);
  for (int i = 0; i < 20; ++i) {
    check::that(!is_loaded(provider), "the provider is loaded without a factory");
    OrtEpFactory* factory = library.create();
    check_provider(factory);
    check::that(is_loaded(provider), "the provider is not loaded");
    library.release(factory);
  }
  check::that(!is_loaded(provider), "the provider is loaded after the last factory");
}

void test_factories_of_threads(const Paths& paths) {
  const Library library(paths, paths.libraries);
  on_eight_threads([&](unsigned) {
    for (int i = 0; i < 50; ++i) {
      OrtEpFactory* factory = library.create();
      check_provider(factory);
      library.release(factory);
    }
  });
  check::that(!is_loaded(paths.libraries / kProvider), "the provider is loaded after the last factory");
}

void test_provider_that_comes_late(const Paths& paths) {
  const ort_tests::TemporaryFolder folder;
  std::filesystem::copy_file(paths.libraries / kBackend, folder.path() / kBackend);
  const Library library(paths, folder.path());
  check::contains(failure_of(library), "put libhipdnn_ep.so beside libhipdnn-backend.so");
  check::contains(failure_of(library), (folder.path() / kProvider).string());
  for (const char* name : {kProvider, "libhipdnn_host.so"}) std::filesystem::create_symlink(paths.libraries / name, folder.path() / name);
  OrtEpFactory* factory = library.create();
  check_provider(factory);
  library.release(factory);
  check::that(!is_loaded(folder.path() / kProvider), "the provider is loaded after the last factory");
}

/// As the AMD GPU umbrella provider does: it asks for no devices on offer, passes none, and has memory of GPUs under numbers of its own.
void test_gpu_of_an_umbrella(const Paths& paths) {
  const Library library(paths, paths.libraries);
  const OrtApi& api = library.api();
  OrtEpFactory* factory = library.create(1, "tests.virtual");
  OrtSessionOptions* options = nullptr;
  library.succeed(api.CreateSessionOptions(&options));
  OrtEp* ep = nullptr;
  library.succeed(factory->CreateEp(factory, nullptr, nullptr, 0, options, nullptr, &ep));
  check::that(factory->IsStreamAware(factory), "the session runs on the CPU");
  OrtMemoryInfo* info = nullptr;
  constexpr std::uint32_t amd = 0x1002;
  library.succeed(api.CreateMemoryInfo_V2("default", OrtMemoryInfoDeviceType_GPU, amd, 1, OrtDeviceMemoryType_DEFAULT, 0,
                                          OrtDeviceAllocator, &info));
  OrtAllocator* allocator = nullptr;
  library.succeed(factory->CreateAllocator(factory, info, nullptr, &allocator));
  const OrtMemoryDevice* device = api.GetEpApi()->MemoryInfo_GetMemoryDevice(info);
  OrtDataTransferImpl* transfer = nullptr;
  library.succeed(factory->CreateDataTransfer(factory, &transfer));
  check::that(transfer->CanCopy(transfer, device, device), "nothing copies the umbrella's memory");
  transfer->Release(transfer);
  OrtDataTransferImpl* again = nullptr;
  library.succeed(factory->CreateDataTransfer(factory, &again));
  check::that(again == transfer, "each session gets a data transfer of its own, which the umbrella does not release");
  OrtSyncStreamImpl* stream = nullptr;
  library.succeed(ep->CreateSyncStreamForDevice(ep, device, &stream));
  check::that(stream != nullptr, "there is no stream");
  stream->Release(stream);
  factory->ReleaseAllocator(factory, allocator);
  factory->ReleaseEp(factory, ep);
  api.ReleaseMemoryInfo(info);
  api.ReleaseSessionOptions(options);
  library.release(factory);
}

void test_no_room_for_a_factory(const Paths& paths) {
  const Library library(paths, paths.libraries);
  check::contains(failure_of(library, 0), "no room for a factory");
  check::that(!is_loaded(paths.libraries / kProvider), "the provider is loaded after a failure");
}

}  // namespace

void add_library_cases(check::Suite& suite, const Paths& paths) {
  suite.add("library: loads and unloads the provider when factories come one after the other", [&] { test_factories_in_turn(paths); });
  suite.add("library: eight threads create and release", [&] { test_factories_of_threads(paths); });
  suite.add("library: works when the provider comes late", [&] { test_provider_that_comes_late(paths); });
  suite.add("library: runs on the GPU, whatever its number, when an umbrella passes no device", [&] { test_gpu_of_an_umbrella(paths); });
  suite.add("library: passes the error on when there is no room for a factory", [&] { test_no_room_for_a_factory(paths); });
}

}  // namespace umbrella_tests
