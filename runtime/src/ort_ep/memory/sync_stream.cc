#include "memory/sync_stream.h"

#include <charconv>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "device/error.h"

namespace hipdnn_ep {

hipStream_t parse_user_stream(std::string_view text) {
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = is_hexadecimal ? text.substr(2) : text;
  std::uintptr_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, is_hexadecimal ? 16 : 10);
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    throw hipdnn_rt::InputError(std::string(kUserComputeStream) + ": expected the handle of a HIP stream as a number, got '" +
                                std::string(text) + "'");
  }
  const auto stream = reinterpret_cast<hipStream_t>(value);
  if (stream == hipStreamPerThread) {
    throw hipdnn_rt::InputError(std::string(kUserComputeStream) +
                                ": hipStreamPerThread is another stream in every thread; pass one made by hipStreamCreate");
  }
  return stream;
}

SyncStream::SyncStream(const Ort& ort, std::shared_ptr<DeviceMemory> memory, hipStream_t existing)
    : OrtSyncStreamImpl{},
      ort_(ort),
      memory_(std::move(memory)),
      owned_(existing == nullptr ? memory_->device().create_stream() : hipdnn_rt::Stream()),
      handle_(existing == nullptr ? owned_.get() : existing) {
  memory_->streams().attach(handle_);
  ort_version_supported = ORT_API_VERSION;
  Release = [](OrtSyncStreamImpl* base) noexcept { delete static_cast<SyncStream*>(base); };
  GetHandle = [](OrtSyncStreamImpl* base) noexcept -> void* { return static_cast<SyncStream*>(base)->handle_; };
  CreateNotification = [](OrtSyncStreamImpl* base, OrtSyncNotificationImpl** out) noexcept -> OrtStatus* {
    const auto& stream = *static_cast<const SyncStream*>(base);
    return guard(stream.ort_, [&] { *out = std::make_unique<Notification>(stream.ort_, stream).release(); });
  };
  Flush = [](OrtSyncStreamImpl* base) noexcept -> OrtStatus* {
    const auto& stream = *static_cast<const SyncStream*>(base);
    return guard(stream.ort_, [&] { stream.memory_->streams().synchronize(stream.handle_); });
  };
  // Nothing of a run is kept here: blocks it let go stay with the stream, and ONNX Runtime flushes next where it wants results.
  OnSessionRunEnd = [](OrtSyncStreamImpl*) noexcept -> OrtStatus* { return nullptr; };
}

SyncStream::~SyncStream() {
  try {
    memory_->streams().synchronize(handle_);
  } catch (const std::exception&) {
    // The device refuses further work, so there is none to wait for; whoever uses it next gets the same error.
  }
  memory_->streams().detach(handle_);
}

Notification::Notification(const Ort& ort, const SyncStream& stream)
    : OrtSyncNotificationImpl{}, ort_(ort), memory_(stream.memory()), producer_(stream.handle()), event_(memory_->events().take()) {
  ort_version_supported = ORT_API_VERSION;
  Release = [](OrtSyncNotificationImpl* base) noexcept { delete static_cast<Notification*>(base); };
  Activate = [](OrtSyncNotificationImpl* base) noexcept -> OrtStatus* {
    auto& notification = *static_cast<Notification*>(base);
    return guard(notification.ort_, [&] { notification.activate(); });
  };
  WaitOnDevice = [](OrtSyncNotificationImpl* base, OrtSyncStream* consumer) noexcept -> OrtStatus* {
    auto& notification = *static_cast<Notification*>(base);
    return guard(notification.ort_, [&] { notification.wait_on_device(consumer); });
  };
  WaitOnHost = [](OrtSyncNotificationImpl* base) noexcept -> OrtStatus* {
    auto& notification = *static_cast<Notification*>(base);
    return guard(notification.ort_, [&] { notification.wait_on_host(); });
  };
}

Notification::~Notification() { memory_->events().give(std::move(event_)); }

void Notification::activate() {
  memory_->device().activate();
  hipdnn_rt::check(memory_->hip(), memory_->hip().event_record(event_.get(), producer_), "hipEventRecord");
  is_active_ = true;
}

void Notification::wait_on_device(OrtSyncStream* consumer) {
  const auto handle = consumer != nullptr ? static_cast<hipStream_t>(ort_.api->SyncStream_GetHandle(consumer)) : nullptr;
  // ONNX Runtime asks for a wait on the device also where the consumer is the host or another provider, which no HIP event holds back.
  if (consumer == nullptr || !memory_->streams().contains(handle)) return wait_on_host();
  if (!is_active_) return;
  hipdnn_rt::check(memory_->hip(), memory_->hip().stream_wait_event(handle, event_.get(), 0), "hipStreamWaitEvent");
}

void Notification::wait_on_host() {
  if (!is_active_) return;
  hipdnn_rt::check(memory_->hip(), memory_->hip().event_synchronize(event_.get()), "hipEventSynchronize");
}

}  // namespace hipdnn_ep
