#include "memory/device_memory.h"

#include <string>
#include <utility>

#include "memory/memory_info.h"

namespace hipdnn_ep {
namespace {

constexpr std::size_t kDefaultCacheBytes = std::size_t{1} << 30;
constexpr std::size_t kDefaultCacheDivisor = 4;

std::string pool_name(const hipdnn_rt::Device& device, const char* kind) {
  return "device " + std::to_string(device.ordinal()) + " of port '" + std::string(device.port().name) + "', " + kind;
}

std::size_t cache_bytes(const hipdnn_rt::Device& device, std::optional<std::size_t> wanted) {
  if (wanted) return *wanted;
  const std::optional<hipdnn_rt::MemoryInfo> info = device.memory_info();
  return info ? info->total_bytes / kDefaultCacheDivisor : kDefaultCacheBytes;
}

}  // namespace

DeviceMemory::DeviceMemory(std::shared_ptr<const hipdnn_rt::Device> device, Options options)
    : device_(std::move(device)),
      events_(device_),
      streams_(device_, events_),
      device_pool_(
          pool_name(*device_, "device memory"), [device = device_](std::size_t bytes) { return device->allocate(bytes); }, streams_,
          cache_bytes(*device_, options.max_cached_bytes)),
      pinned_pool_(
          pool_name(*device_, "pinned memory"), [device = device_](std::size_t bytes) { return device->allocate_pinned(bytes); }, streams_,
          options.max_cached_pinned_bytes) {}

std::uint32_t DeviceMemory::vendor_id() const { return vendor_id_of(device_->port()); }

}  // namespace hipdnn_ep
