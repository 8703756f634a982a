#include "backend.h"

#include <dlfcn.h>

#include <span>
#include <utility>

namespace hipdnn_backend {

std::string Backend::load() {
  handle_ = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) return dlerror();
  create_ = reinterpret_cast<CreateFunction>(dlsym(handle_, "CreateEpFactories"));
  release_ = reinterpret_cast<ReleaseFunction>(dlsym(handle_, "ReleaseEpFactory"));
  if (create_ != nullptr && release_ != nullptr) return {};
  unload();
  return library_ + " has no CreateEpFactories or ReleaseEpFactory: it is no execution provider";
}

void Backend::unload() {
  create_ = nullptr;
  release_ = nullptr;
  dlclose(std::exchange(handle_, nullptr));
}

OrtStatus* Backend::create(const char* registration_name, const OrtApiBase* base, const OrtLogger* logger, OrtEpFactory** factories,
                           std::size_t max_factories, std::size_t* factory_count) {
  *factory_count = 0;
  const std::lock_guard lock(mutex_);
  if (count_ == 0) {
    if (const std::string problem = load(); !problem.empty()) {
      const std::string message = "the hipDNN backend cannot load its execution provider: " + problem + "; put libhipdnn_ep.so beside " +
                                  "libhipdnn-backend.so";
      return base->GetApi(1)->CreateStatus(ORT_FAIL, message.c_str());
    }
  }
  OrtStatus* status = create_(registration_name, base, logger, factories, max_factories, factory_count);
  if (status == nullptr && *factory_count == 1) {
    ++count_;
    return nullptr;
  }
  // Not exactly one: none is handed on, as if nothing had been created.
  for (OrtEpFactory*& factory : std::span(factories, std::exchange(*factory_count, 0))) release_(std::exchange(factory, nullptr));
  if (count_ == 0) unload();
  return status != nullptr ? status : base->GetApi(1)->CreateStatus(ORT_FAIL, "the hipDNN execution provider gave no single factory");
}

OrtStatus* Backend::release(OrtEpFactory* factory) {
  const std::lock_guard lock(mutex_);
  if (factory == nullptr || count_ == 0) return nullptr;
  OrtStatus* status = release_(factory);
  if (--count_ == 0) unload();
  return status;
}

}  // namespace hipdnn_backend
