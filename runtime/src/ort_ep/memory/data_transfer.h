// ONNX Runtime's copies between host memory and this provider's devices.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "memory/device_memory.h"
#include "ort.h"

namespace hipdnn_ep {

/// Copies tensors between the host, pinned host memory and the given devices. ONNX Runtime owns it once CreateDataTransfer has returned it
/// (`release()` of a unique_ptr) and deletes it by Release. Safe to share between threads.
///
/// Stream order: with a stream of the device the copy is queued there and this returns at once; memory that is not pinned HIP reads or
/// writes before it returns, and ONNX Runtime counts on that. Without a stream the copy runs after all that the device's streams have been
/// given so far, and is done on return.
class DataTransfer : public OrtDataTransferImpl {
 public:
  /// A device's vendor and ordinal are those of ONNX Runtime's memory infos; one entry per device. If others number devices, there is one of
  /// the vendor's, which has any number.
  DataTransfer(const Ort& ort, std::vector<std::shared_ptr<DeviceMemory>> devices, bool others_number = false);
  DataTransfer(const DataTransfer&) = delete;
  DataTransfer& operator=(const DataTransfer&) = delete;

 private:
  struct Copy;
  /// A device, and streams for its copies that come without one, each used by one call at a time.
  struct Lane {
    std::shared_ptr<DeviceMemory> memory;
    std::vector<hipdnn_rt::Stream> idle;
  };
  /// Where a tensor lies: on a device, in memory pinned for one, or, without a lane, in ordinary host memory.
  struct Place {
    bool is_known = false;
    bool is_device = false;
    Lane* lane = nullptr;
  };

  Place place_of(const OrtMemoryDevice* device) const;
  Copy plan(const OrtValue* source, OrtValue* destination) const;
  /// `streams` is empty, or as long as the others with null where a tensor has none.
  void copy_tensors(std::span<const OrtValue* const> sources, std::span<OrtValue* const> destinations,
                    std::span<OrtSyncStream* const> streams);
  /// Those of `copies` that are the lane's, waited for.
  void copy_now(Lane& lane, std::span<const Copy> copies);
  hipdnn_rt::Stream take_stream(Lane& lane);

  Ort ort_;
  bool others_number_;
  /// Guards the lanes' idle streams.
  std::mutex mutex_;
  mutable std::vector<Lane> lanes_;
};

}  // namespace hipdnn_ep
