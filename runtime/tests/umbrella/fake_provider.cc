// A provider library that does as the registration name says: "one" gives a factory, "two" gives two, "none" gives none and no error,
// "refuse" gives an error, "refuse_late" a factory and an error.
#include <onnxruntime_c_api.h>

#include <atomic>
#include <string_view>

namespace {

/// Factories given out and not released.
std::atomic<int>& alive() {
  static std::atomic<int> count{0};
  return count;
}

OrtEpFactory* make_factory() {
  auto* factory = new OrtEpFactory{};
  factory->ort_version_supported = ORT_API_VERSION;
  factory->GetName = [](const OrtEpFactory*) noexcept { return "FakeExecutionProvider"; };
  ++alive();
  return factory;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT OrtStatus* CreateEpFactories(const char* name, const OrtApiBase* base, const OrtLogger*, OrtEpFactory** factories, size_t capacity,
                                    size_t* count) {
  const std::string_view wish = name;
  const size_t wanted = wish == "two" ? 2 : (wish == "none" || wish == "refuse" ? 0 : 1);
  for (*count = 0; *count < wanted && *count < capacity; ++*count) factories[*count] = make_factory();
  return wish.starts_with("refuse") ? base->GetApi(ORT_API_VERSION)->CreateStatus(ORT_FAIL, "the fake provider refuses") : nullptr;
}

EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  delete factory;
  --alive();
  return nullptr;
}

EXPORT int FakeFactoriesAlive() { return alive(); }
