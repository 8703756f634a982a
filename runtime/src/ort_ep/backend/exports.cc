// The two functions through which an umbrella provider reaches this one as a backend.
#include <dlfcn.h>

#include <exception>
#include <filesystem>

#include "backend.h"

namespace {

std::string provider_path() {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&provider_path), &info);
  return (std::filesystem::absolute(info.dli_fname).parent_path() / "libhipdnn_ep.so").string();
}

hipdnn_backend::Backend& backend() {
  static hipdnn_backend::Backend instance(provider_path());
  return instance;
}

}  // namespace

#define HIPDNN_BACKEND_EXPORT extern "C" __attribute__((visibility("default")))

HIPDNN_BACKEND_EXPORT OrtStatus* CreateEpFactories(const char* registration_name, const OrtApiBase* base, const OrtLogger* logger,
                                                   OrtEpFactory** factories, size_t max_factories, size_t* factory_count) {
  try {
    return backend().create(registration_name, base, logger, factories, max_factories, factory_count);
  } catch (const std::exception& error) {
    return base->GetApi(1)->CreateStatus(ORT_FAIL, error.what());
  }
}

HIPDNN_BACKEND_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) { return backend().release(factory); }
