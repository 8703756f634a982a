#include "cache_key.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "device/library.h"
#include "storage/mapped_file.h"
#include "storage/sha256.h"

namespace hipdnn_ep {
namespace {

/// Not where the library lies or when it was installed: a cache is to be found again in another container with the same packages.
std::string library_digest() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&library_digest), &info) == 0) return {};
  try {
    const hipdnn_rt::MappedFile file(info.dli_fname);
    hipdnn_rt::Sha256 digest;
    digest.update(file.bytes());
    return digest.hex_digest();
  } catch (const hipdnn_rt::Error&) {
    return {};
  }
}

/// A library on the CPU may take a graph on one and refuse it on another, by its instruction sets.
std::string instruction_sets() {
  constexpr std::array kPrefixes{"sse4", "avx", "fma", "f16c", "amx"};
  std::ifstream info("/proc/cpuinfo");
  std::string sets;
  for (std::string line; std::getline(info, line) && !line.empty();) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const bool is_set = std::ranges::any_of(kPrefixes, [&](const char* prefix) { return word.starts_with(prefix); });
      if (is_set) sets += (sets.empty() ? "" : " ") + word;
    }
  }
  return sets;
}

}  // namespace

KeyParts make_key_parts(const std::string& target, const std::string& precision, const std::string& library) {
  static const std::string provider = HIPDNN_MLIR_VERSION " " + library_digest();
  return {provider, library, hipdnn_rt::plain_target(target) == "host" ? instruction_sets() : "", target, precision};
}

nlohmann::json to_json(const KeyParts& parts) {
  return {{"provider", parts.provider}, {"library", parts.library}, {"cpu", parts.cpu}, {"target", parts.target}, {"precision", parts.precision}};
}

std::string make_key(const std::string& action, const KeyParts& parts, const std::string& content, const std::string& detail) {
  hipdnn_rt::Sha256 digest;
  for (const std::string& text : {action, parts.provider, parts.library, parts.cpu, parts.target, parts.precision, content, detail}) {
    digest.update(text);
    digest.update(std::string_view("\0", 1));
  }
  return digest.hex_digest();
}

}  // namespace hipdnn_ep
