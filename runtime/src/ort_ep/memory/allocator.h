// ONNX Runtime's allocator interface over a device's pools.
#pragma once

#include <memory>

#include "logger.h"
#include "memory/device_memory.h"
#include "ort.h"

namespace hipdnn_ep {

/// Device memory, or pinned host memory, for ONNX Runtime. The factory creates it for CreateAllocator and frees it by `release` from
/// ReleaseAllocator; several may share one DeviceMemory. Safe to share between threads.
///
/// Stream order: AllocOnStream lends device memory for one stream's work, Alloc for anyone's; see BlockPool. Pinned memory is written by the
/// host without any order, so it has no AllocOnStream. An allocation that fails is null, with one line in the log.
class Allocator : public OrtAllocator {
 public:
  /// `info` says which memory, and must stay valid for the allocator's life, as the one given to EpDevice_AddAllocatorInfo does. Throws
  /// InputError where the port has no such memory. `logger` may be null.
  Allocator(const Ort& ort, std::shared_ptr<DeviceMemory> memory, const OrtMemoryInfo* info, const OrtLogger* logger);
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// Delete `allocator`, which is one of these or null.
  static void release(OrtAllocator* allocator) noexcept { delete static_cast<Allocator*>(allocator); }

 private:
  static Allocator& self(OrtAllocator* base) { return *static_cast<Allocator*>(base); }
  static const Allocator& self(const OrtAllocator* base) { return *static_cast<const Allocator*>(base); }

  /// The stream that work given to `stream` goes to, where that is one of this device's.
  StreamUser user_of(OrtSyncStream* stream) const;
  OrtKeyValuePairs* make_stats() const;

  Ort ort_;
  std::shared_ptr<DeviceMemory> memory_;
  BlockPool& pool_;
  const OrtMemoryInfo* info_;
  Logger logger_;
};

}  // namespace hipdnn_ep
