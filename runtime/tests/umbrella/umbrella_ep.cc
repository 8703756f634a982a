// A small umbrella execution provider, as a test of the backend library: one provider that routes a session to a backend by its option
// `profile`, in the manner of the AMD GPU umbrella provider. `profile=llm` (also `3`) goes to libhipdnn-backend.so, the only backend.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

namespace {

constexpr const char* kName = "AMDGPUExecutionProvider";
constexpr const char* kProfileEntry = "ep.amdgpuexecutionprovider.profile";

struct Backend {
  using Create = OrtStatus* (*)(const char*, const OrtApiBase*, const OrtLogger*, OrtEpFactory**, size_t, size_t*);
  using Release = OrtStatus* (*)(OrtEpFactory*);
  void* library = nullptr;
  Create create = nullptr;
  Release release = nullptr;
};

std::string backend_path() {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&backend_path), &info);
  const char* given = std::getenv("TEST_HIPDNN_BACKEND");
  return given != nullptr ? given : (std::filesystem::path(info.dli_fname).parent_path() / "libhipdnn-backend.so").string();
}

class Umbrella final : public OrtEpFactory {
 public:
  Umbrella(const OrtApiBase* base, const OrtLogger* logger)
      : OrtEpFactory{}, base_(base), api_(base->GetApi(ORT_API_VERSION)), logger_(logger) {
    ort_version_supported = ORT_API_VERSION;
    GetName = [](const OrtEpFactory*) noexcept { return kName; };
    GetVendor = [](const OrtEpFactory*) noexcept { return "AMD"; };
    GetVendorId = [](const OrtEpFactory*) noexcept { return uint32_t{0x1002}; };
    GetVersion = [](const OrtEpFactory*) noexcept { return "0.0.1"; };
    // The CPU's memory is ONNX Runtime's own.
    CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*, OrtAllocator** allocator) noexcept -> OrtStatus* {
      *allocator = nullptr;
      return nullptr;
    };
    ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) noexcept {};
    CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** transfer) noexcept -> OrtStatus* {
      *transfer = nullptr;
      return nullptr;
    };
    IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
    GetSupportedDevices = [](OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count, OrtEpDevice** offers,
                             size_t capacity, size_t* offered) noexcept {
      return of(self)->offer(devices, count, offers, capacity, offered);
    };
    CreateEp = [](OrtEpFactory* self, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, size_t,
                  const OrtSessionOptions* options, const OrtLogger* logger,
                  OrtEp** ep) noexcept { return of(self)->create(options, logger, ep); };
    ReleaseEp = [](OrtEpFactory* self, OrtEp* ep) noexcept { of(self)->release(ep); };
  }
  ~Umbrella() {
    if (backend_.library != nullptr) dlclose(backend_.library);
  }

 private:
  static Umbrella* of(OrtEpFactory* self) { return static_cast<Umbrella*>(self); }
  OrtStatus* fail(const std::string& message) const { return api_->CreateStatus(ORT_FAIL, message.c_str()); }

  OrtStatus* offer(const OrtHardwareDevice* const* devices, size_t count, OrtEpDevice** offers, size_t capacity, size_t* offered) {
    *offered = 0;
    for (size_t i = 0; i < count && *offered < capacity; ++i) {
      if (api_->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
      if (OrtStatus* status = api_->GetEpApi()->CreateEpDevice(this, devices[i], nullptr, nullptr, &offers[*offered])) return status;
      ++*offered;
    }
    return nullptr;
  }

  std::string profile_of(const OrtSessionOptions* options) const {
    char text[64] = {};
    size_t size = sizeof(text);
    int is_there = 0;
    if (api_->HasSessionConfigEntry(options, kProfileEntry, &is_there) != nullptr || is_there == 0) return "";
    return api_->GetSessionConfigEntry(options, kProfileEntry, text, &size) == nullptr ? text : "";
  }

  std::string load() {
    const std::lock_guard lock(mutex_);
    if (backend_.library != nullptr) return "";
    void* library = dlopen(backend_path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return dlerror();
    backend_ = {library, reinterpret_cast<Backend::Create>(dlsym(library, "CreateEpFactories")),
                reinterpret_cast<Backend::Release>(dlsym(library, "ReleaseEpFactory"))};
    return backend_.create != nullptr && backend_.release != nullptr ? "" : backend_path() + " is no backend";
  }

  /// A backend's factory per session, with no device passed on.
  OrtStatus* create(const OrtSessionOptions* options, const OrtLogger* logger, OrtEp** ep) {
    *ep = nullptr;
    const std::string profile = profile_of(options);
    if (profile != "llm" && profile != "3") return fail("profile '" + profile + "': the test umbrella knows 'llm' and '3'");
    if (const std::string problem = load(); !problem.empty()) return fail(problem);
    OrtEpFactory* factory = nullptr;
    size_t count = 0;
    if (OrtStatus* status = backend_.create("hipdnn", base_, logger_, &factory, 1, &count)) return status;
    OrtStatus* status = factory->CreateEp(factory, nullptr, nullptr, 0, options, logger, ep);
    if (status != nullptr) {
      backend_.release(factory);
      return status;
    }
    const std::lock_guard lock(mutex_);
    factories_[*ep] = factory;
    return nullptr;
  }

  void release(OrtEp* ep) {
    OrtEpFactory* factory = nullptr;
    {
      const std::lock_guard lock(mutex_);
      factory = factories_.at(ep);
      factories_.erase(ep);
    }
    factory->ReleaseEp(factory, ep);
    backend_.release(factory);
  }

  const OrtApiBase* base_;
  const OrtApi* api_;
  const OrtLogger* logger_;
  std::mutex mutex_;
  Backend backend_;
  std::map<OrtEp*, OrtEpFactory*> factories_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) OrtStatus* CreateEpFactories(const char*, const OrtApiBase* base, const OrtLogger* logger,
                                                                             OrtEpFactory** factories, size_t, size_t* count) {
  factories[0] = new Umbrella(base, logger);
  *count = 1;
  return nullptr;
}

extern "C" __attribute__((visibility("default"))) OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  delete static_cast<Umbrella*>(factory);
  return nullptr;
}
