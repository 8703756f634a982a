#include "memory/allocator.h"

#include <string>
#include <utility>

#include "device/error.h"

namespace hipdnn_ep {
namespace {

bool is_pinned(const Ort& ort, const OrtMemoryInfo* info) {
  return ort.api->MemoryInfoGetDeviceMemType(info) == OrtDeviceMemoryType_HOST_ACCESSIBLE;
}

/// ONNX Runtime's answer to null is an error of its own, without a reason; the log has it.
template <typename Body>
void* try_allocate(const Logger& logger, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {
    logger.warning(error.what());
    return nullptr;
  }
}

}  // namespace

Allocator::Allocator(const Ort& ort, std::shared_ptr<DeviceMemory> memory, const OrtMemoryInfo* info, const OrtLogger* logger)
    : OrtAllocator{},
      ort_(ort),
      memory_(std::move(memory)),
      pool_(is_pinned(ort, info) ? memory_->pinned_pool() : memory_->device_pool()),
      info_(info),
      logger_(ort, logger) {
  if (is_pinned(ort, info) && !memory_->device().has_pinned_memory()) {
    throw hipdnn_rt::InputError("port '" + std::string(memory_->device().port().name) +
                                "' has no pinned host memory: create the allocator of its device memory only");
  }
  version = ORT_API_VERSION;
  Alloc = [](OrtAllocator* base, std::size_t bytes) noexcept -> void* {
    return try_allocate(self(base).logger_, [&] { return self(base).pool_.allocate(bytes); });
  };
  Reserve = [](OrtAllocator* base, std::size_t bytes) noexcept -> void* {
    return try_allocate(self(base).logger_, [&] { return self(base).pool_.reserve(bytes); });
  };
  Free = [](OrtAllocator* base, void* pointer) noexcept {
    try {
      self(base).pool_.release(pointer);
    } catch (const std::exception& error) {
      self(base).logger_.warning(error.what());
    }
  };
  Info = [](const OrtAllocator* base) noexcept { return self(base).info_; };
  GetStats = [](const OrtAllocator* base, OrtKeyValuePairs** out) noexcept -> OrtStatus* {
    return guard(self(base).ort_, [&] { *out = self(base).make_stats(); });
  };
  if (is_pinned(ort, info)) return;
  AllocOnStream = [](OrtAllocator* base, std::size_t bytes, OrtSyncStream* stream) noexcept -> void* {
    return try_allocate(self(base).logger_, [&] { return self(base).pool_.allocate(bytes, self(base).user_of(stream)); });
  };
}

StreamUser Allocator::user_of(OrtSyncStream* stream) const {
  if (stream == nullptr) return std::nullopt;
  // Not every stream ONNX Runtime passes is of this provider; the handle is all that they have in common.
  const auto handle = static_cast<hipStream_t>(ort_.api->SyncStream_GetHandle(stream));
  return memory_->streams().contains(handle) ? StreamUser(handle) : std::nullopt;
}

OrtKeyValuePairs* Allocator::make_stats() const {
  const PoolStats stats = pool_.stats();
  OrtKeyValuePairs* pairs = nullptr;
  ort_.api->CreateKeyValuePairs(&pairs);
  const auto add = [&](const char* key, const std::string& value) { ort_.api->AddKeyValuePair(pairs, key, value.c_str()); };
  add("Limit", "-1");
  add("InUse", std::to_string(stats.used_bytes));
  add("TotalAllocated", std::to_string(stats.used_bytes + stats.cached_bytes));
  add("MaxInUse", std::to_string(stats.max_used_bytes));
  add("NumAllocs", std::to_string(stats.allocation_count));
  add("NumReserves", std::to_string(stats.reservation_count));
  add("NumArenaExtensions", std::to_string(stats.growth_count));
  add("NumArenaShrinkages", std::to_string(stats.shrink_count));
  add("MaxAllocSize", std::to_string(stats.max_request_bytes));
  add("Cached", std::to_string(stats.cached_bytes));
  add("MaxCached", std::to_string(pool_.max_cached_bytes()));
  return pairs;
}

}  // namespace hipdnn_ep
