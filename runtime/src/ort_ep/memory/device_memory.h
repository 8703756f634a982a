// One device's memory as the execution provider lends it: pools of device memory and of pinned host memory, and the streams that use them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "memory/block_pool.h"
#include "memory/event_pool.h"
#include "memory/stream_set.h"
#include "plan/device.h"

namespace hipdnn_ep {

/// Shared by the allocators, streams and data transfers of one device; it lives until the last of them is gone. Safe to share between
/// threads.
class DeviceMemory {
 public:
  struct Options {
    /// Device memory kept for later use. Without a value a quarter of the device's memory, or a gibibyte where the port does not tell.
    std::optional<std::size_t> max_cached_bytes;
    /// The same for pinned host memory.
    std::size_t max_cached_pinned_bytes = std::size_t{256} << 20;
  };

  explicit DeviceMemory(std::shared_ptr<const hipdnn_rt::Device> device) : DeviceMemory(std::move(device), Options{}) {}
  DeviceMemory(std::shared_ptr<const hipdnn_rt::Device> device, Options options);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  const hipdnn_rt::Device& device() const { return *device_; }
  const hipdnn_rt::HipApi& hip() const { return device_->library().hip(); }
  int ordinal() const { return device_->ordinal(); }
  std::uint32_t vendor_id() const;

  EventPool& events() { return events_; }
  StreamSet& streams() { return streams_; }
  BlockPool& device_pool() { return device_pool_; }
  /// Throws DeviceError at the first allocation where the port has no pinned memory.
  BlockPool& pinned_pool() { return pinned_pool_; }

 private:
  std::shared_ptr<const hipdnn_rt::Device> device_;
  EventPool events_;
  StreamSet streams_;
  BlockPool device_pool_;
  BlockPool pinned_pool_;
};

}  // namespace hipdnn_ep
