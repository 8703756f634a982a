// ONNX Runtime's streams and notifications over HIP streams and events.
#pragma once

#include <memory>
#include <string_view>

#include "memory/device_memory.h"
#include "ort.h"

namespace hipdnn_ep {

/// The option, of a provider or of a stream, under which execution providers take a stream of the caller's: its handle as a number.
inline constexpr const char* kUserComputeStream = "user_compute_stream";

/// The stream that a value of that option names: a decimal number, or a hexadecimal one after "0x". Null for 0, which stands for none of the
/// caller's. Throws InputError for anything else, and for the name that stands for another stream in every thread.
hipStream_t parse_user_stream(std::string_view text);

/// A stream that ONNX Runtime drives: owned, or the caller's own. ONNX Runtime owns this object once CreateSyncStreamForDevice has returned
/// it and deletes it by Release, which waits for the stream's work. Used by one thread at a time, but for the order that pools and copies
/// put other streams in.
class SyncStream : public OrtSyncStreamImpl {
 public:
  /// `existing` belongs to the caller, is of the same device and outlives this object. Null makes a new stream.
  SyncStream(const Ort& ort, std::shared_ptr<DeviceMemory> memory, hipStream_t existing = nullptr);
  ~SyncStream();
  SyncStream(const SyncStream&) = delete;
  SyncStream& operator=(const SyncStream&) = delete;

  hipStream_t handle() const { return handle_; }
  const std::shared_ptr<DeviceMemory>& memory() const { return memory_; }

 private:
  Ort ort_;
  std::shared_ptr<DeviceMemory> memory_;
  hipdnn_rt::Stream owned_;
  hipStream_t handle_;
};

/// A point in a stream's work that other streams, or the host, wait for. ONNX Runtime owns it and deletes it by Release, before the stream.
/// Activate is called from the stream's thread, waits from any.
class Notification : public OrtSyncNotificationImpl {
 public:
  Notification(const Ort& ort, const SyncStream& stream);
  ~Notification();
  Notification(const Notification&) = delete;
  Notification& operator=(const Notification&) = delete;

 private:
  void activate();
  void wait_on_device(OrtSyncStream* consumer);
  void wait_on_host();

  Ort ort_;
  std::shared_ptr<DeviceMemory> memory_;
  hipStream_t producer_;
  hipdnn_rt::Event event_;
  /// Whether the event was recorded for this notification: it is one that others used before.
  bool is_active_ = false;
};

}  // namespace hipdnn_ep
