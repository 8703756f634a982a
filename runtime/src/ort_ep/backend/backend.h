// The provider's library, loaded while factories of it are alive.
#pragma once

#include <onnxruntime_c_api.h>

#include <cstddef>
#include <mutex>
#include <string>

namespace hipdnn_backend {

/// Forwards to libhipdnn_ep.so beside this library: loads it for the first factory and unloads it after the last. Safe to use from several
/// threads.
class Backend {
 public:
  /// `library` is the path of the provider's library.
  explicit Backend(std::string library) : library_(std::move(library)) {}
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  /// As CreateEpFactories. The factory is the provider's own; there is one. Where this fails nothing has changed, and it may be tried again.
  OrtStatus* create(const char* registration_name, const OrtApiBase* base, const OrtLogger* logger, OrtEpFactory** factories,
                    std::size_t max_factories, std::size_t* factory_count);
  /// As ReleaseEpFactory.
  OrtStatus* release(OrtEpFactory* factory);

 private:
  using CreateFunction = OrtStatus* (*)(const char*, const OrtApiBase*, const OrtLogger*, OrtEpFactory**, std::size_t, std::size_t*);
  using ReleaseFunction = OrtStatus* (*)(OrtEpFactory*);

  /// Why it cannot be loaded; empty where it can.
  std::string load();
  void unload();

  std::mutex mutex_;
  std::string library_;
  void* handle_ = nullptr;
  CreateFunction create_ = nullptr;
  ReleaseFunction release_ = nullptr;
  /// Factories alive.
  std::size_t count_ = 0;
};

}  // namespace hipdnn_backend
