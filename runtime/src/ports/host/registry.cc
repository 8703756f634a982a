// The engines of this library, preferred first.
#include <cstdint>

#include "engine.h"
#if __has_include("engines/onednn_engine.h")
#include "engines/onednn_engine.h"
#endif
#if __has_include("engines/rowwise_engine.h")
#include "engines/rowwise_engine.h"
#endif
#if __has_include("engines/reduction_engine.h")
#include "engines/reduction_engine.h"
#endif

namespace hipdnn_host {

const std::vector<const Engine*>& engines() {
  static const std::vector<const Engine*> ranked = {
#if __has_include("engines/onednn_engine.h")
      &onednn_engine(),
#endif
#if __has_include("engines/rowwise_engine.h")
      &rowwise_engine(),
#endif
#if __has_include("engines/reduction_engine.h")
      &reduction_engine(),
#endif
  };
  return ranked;
}

std::int64_t engine_id(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return static_cast<std::int64_t>(hash);
}

}  // namespace hipdnn_host
