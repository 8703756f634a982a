// The engines of this library, preferred first.
#include <cstdint>

#include "engine.h"
#include "engines/block_scale_engine.h"
#include "engines/custom_op_engine.h"
#include "engines/onednn_engine.h"
#include "engines/reduction_engine.h"
#include "engines/rowwise_engine.h"
#include "engines/sdpa_engine.h"

namespace hipdnn_host {

const std::vector<const Engine*>& engines() {
  static const std::vector<const Engine*> ranked{&onednn_engine(), &sdpa_engine(), &rowwise_engine(), &reduction_engine(), &custom_op_engine(),
                                                  &block_scale_engine()};
  return ranked;
}

std::int64_t engine_id(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return static_cast<std::int64_t>(hash);
}

}  // namespace hipdnn_host
