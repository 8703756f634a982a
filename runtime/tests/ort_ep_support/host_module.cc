// A library that a running Python loads, as ONNX Runtime loads the EP: asks the compiler in process.
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "support/compiler_service.h"

namespace {

/// What there is to tell about one request, as JSON.
nlohmann::json ask(hipdnn_ep::CompilerService& service, const hipdnn_ep::CompilerOptions& options, const char* request,
                   std::span<const int> descriptors) {
  using Cause = hipdnn_ep::CompilerError::Cause;
  const hipdnn_ep::Availability found = service.availability(options);
  nlohmann::json told = {{"description", found.description}, {"available", found.is_available()}};
  try {
    told["result"] = service.request(options, nlohmann::json::parse(request), descriptors);
  } catch (const hipdnn_ep::CompilerError& error) {
    const auto cause = error.cause();
    told["cause"] = cause == Cause::refused ? "refused" : cause == Cause::unavailable ? "unavailable" : "crashed";
    told["message"] = error.what();
    told["kind"] = error.kind();
  }
  return told;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] const char* host_version() { return hipdnn_ep::library_version().data(); }

[[gnu::visibility("default")]] void* host_create(const char* package_root) { return new hipdnn_ep::CompilerService(package_root); }

[[gnu::visibility("default")]] void host_destroy(void* service) { delete static_cast<hipdnn_ep::CompilerService*>(service); }

/// Writes what ask() tells, NUL-terminated, where it fits.
[[gnu::visibility("default")]] int host_ask(void* service, int is_inprocess, const char* request, const int* descriptors, std::size_t count,
                                            char* told, std::size_t capacity) {
  hipdnn_ep::CompilerOptions options;
  options.mode = is_inprocess != 0 ? hipdnn_ep::CompilerMode::inprocess : hipdnn_ep::CompilerMode::automatic;
  const std::string text = ask(*static_cast<hipdnn_ep::CompilerService*>(service), options, request, {descriptors, count}).dump();
  if (text.size() >= capacity) return 1;
  std::memcpy(told, text.c_str(), text.size() + 1);
  return 0;
}
}
