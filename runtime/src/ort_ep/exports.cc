// The functions that ONNX Runtime looks up in a plugin library.
#include <charconv>
#include <new>
#include <string>
#include <string_view>

#include "factory.h"
#include "names.h"

namespace hipdnn_ep {
namespace {

OrtStatus* refuse_version(const OrtApiBase* base) {
  const std::string message = std::string("libhipdnn_ep needs ONNX Runtime 1.") + std::to_string(ORT_API_VERSION) + " or later, this is " +
                              base->GetVersionString() + "; update the package onnxruntime";
  return base->GetApi(1)->CreateStatus(ORT_FAIL, message.c_str());
}

/// 25 of "1.25.0". GetApi tells the same, but prints a warning for a version that is not there.
int minor_version(std::string_view version) {
  int minor = 0;
  const std::size_t dot = version.find('.');
  if (dot != std::string_view::npos) std::from_chars(version.data() + dot + 1, version.data() + version.size(), minor);
  return minor;
}

}  // namespace
}  // namespace hipdnn_ep

#define HIPDNN_EP_EXPORT extern "C" __attribute__((visibility("default")))

HIPDNN_EP_EXPORT OrtStatus* CreateEpFactories(const char* registration_name, const OrtApiBase* base, const OrtLogger* logger,
                                              OrtEpFactory** factories, size_t max_factories, size_t* factory_count) {
  using namespace hipdnn_ep;
  *factory_count = 0;
  Ort ort;
  ort.api = base->GetApi(ORT_API_VERSION);
  if (ort.api == nullptr) return refuse_version(base);
  ort.ep = ort.api->GetEpApi();
  ort.editor = ort.api->GetModelEditorApi();
  ort.has_profiling = minor_version(base->GetVersionString()) >= ORT_API_VERSION_OF_PROFILING;
  return guard(ort, [&] {
    if (max_factories < 1) throw hipdnn_rt::InputError("ONNX Runtime offers no room for a factory");
    factories[0] = new Factory(ort, registration_name == nullptr ? "" : registration_name, Logger(ort, logger), logger);
    *factory_count = 1;
  });
}

HIPDNN_EP_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  delete static_cast<hipdnn_ep::Factory*>(factory);
  return nullptr;
}
