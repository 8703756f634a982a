#include "memory/data_transfer.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "device/error.h"

namespace hipdnn_ep {
namespace {

constexpr hipMemcpyKind copy_kind(bool is_from_device, bool is_to_device) {
  if (is_from_device) return is_to_device ? hipMemcpyDeviceToDevice : hipMemcpyDeviceToHost;
  return is_to_device ? hipMemcpyHostToDevice : hipMemcpyHostToHost;
}

std::size_t tensor_bytes(const Ort& ort, const OrtValue* tensor) {
  std::size_t bytes = 0;
  check(ort, ort.api->GetTensorSizeInBytes(tensor, &bytes));
  return bytes;
}

}  // namespace

/// One tensor's copy. `lane` is the destination's device, or the source's where the destination is the host.
struct DataTransfer::Copy {
  Lane* lane;
  Lane* other;
  void* destination;
  const void* source;
  std::size_t bytes;
  hipMemcpyKind kind;

  void queue(hipStream_t stream) const {
    const hipdnn_rt::HipApi& hip = lane->memory->hip();
    const hipError_t status = hip.memcpy_async(destination, source, bytes, kind, stream);
    if (status != hipSuccess) hipdnn_rt::check(hip, status, "hipMemcpyAsync(" + std::to_string(bytes) + " bytes)");
  }
};

DataTransfer::DataTransfer(const Ort& ort, std::vector<std::shared_ptr<DeviceMemory>> devices, bool others_number)
    : OrtDataTransferImpl{}, ort_(ort), others_number_(others_number) {
  for (std::shared_ptr<DeviceMemory>& memory : devices) lanes_.push_back({std::move(memory), {}});
  ort_version_supported = ORT_API_VERSION;
  Release = [](OrtDataTransferImpl* base) noexcept { delete static_cast<DataTransfer*>(base); };
  CanCopy = [](const OrtDataTransferImpl* base, const OrtMemoryDevice* source, const OrtMemoryDevice* destination) noexcept {
    const auto& transfer = *static_cast<const DataTransfer*>(base);
    const Place from = transfer.place_of(source);
    const Place to = transfer.place_of(destination);
    // Between ordinary host memory ONNX Runtime copies itself.
    return from.is_known && to.is_known && (from.lane != nullptr || to.lane != nullptr);
  };
  CopyTensors = [](OrtDataTransferImpl* base, const OrtValue** sources, OrtValue** destinations, OrtSyncStream** streams,
                   std::size_t count) noexcept -> OrtStatus* {
    auto& transfer = *static_cast<DataTransfer*>(base);
    return guard(transfer.ort_, [&] {
      transfer.copy_tensors({sources, count}, {destinations, count}, {streams, streams == nullptr ? 0 : count});
    });
  };
}

DataTransfer::Place DataTransfer::place_of(const OrtMemoryDevice* device) const {
  const OrtMemoryInfoDeviceType type = ort_.ep->MemoryDevice_GetDeviceType(device);
  if (type == OrtMemoryInfoDeviceType_CPU) return {.is_known = true};
  if (type != OrtMemoryInfoDeviceType_GPU) return {};
  const auto vendor = ort_.ep->MemoryDevice_GetVendorId(device);
  const auto id = ort_.ep->MemoryDevice_GetDeviceId(device);
  const auto lane = std::ranges::find_if(lanes_, [&](const Lane& each) {
    return each.memory->vendor_id() == vendor && (others_number_ || static_cast<std::uint32_t>(each.memory->ordinal()) == id);
  });
  if (lane == lanes_.end()) return {};
  const bool is_device = ort_.ep->MemoryDevice_GetMemoryType(device) == OrtDeviceMemoryType_DEFAULT;
  return {.is_known = true, .is_device = is_device, .lane = &*lane};
}

DataTransfer::Copy DataTransfer::plan(const OrtValue* source, OrtValue* destination) const {
  const Place from = place_of(ort_.ep->Value_GetMemoryDevice(source));
  const Place to = place_of(ort_.ep->Value_GetMemoryDevice(destination));
  if (!from.is_known || !to.is_known || (from.lane == nullptr && to.lane == nullptr)) {
    throw hipdnn_rt::InputError("a tensor copy has neither end on a device of this provider");
  }
  Copy copy{.lane = to.lane != nullptr ? to.lane : from.lane,
            .other = from.lane,
            .destination = nullptr,
            .source = nullptr,
            .bytes = tensor_bytes(ort_, source),
            .kind = copy_kind(from.is_device, to.is_device)};
  if (const std::size_t room = tensor_bytes(ort_, destination); room < copy.bytes) {
    throw hipdnn_rt::InputError("a tensor copy of " + std::to_string(copy.bytes) + " bytes into a tensor of " + std::to_string(room) +
                                ": both must have the same type and shape");
  }
  if (copy.bytes == 0) return copy;
  check(ort_, ort_.api->GetTensorData(source, &copy.source));
  check(ort_, ort_.api->GetTensorMutableData(destination, &copy.destination));
  if (copy.source == nullptr || copy.destination == nullptr) {
    throw hipdnn_rt::DeviceError("a tensor to copy has no memory for its " + std::to_string(copy.bytes) +
                                 " bytes: its allocation failed, the log says why");
  }
  return copy;
}

void DataTransfer::copy_tensors(std::span<const OrtValue* const> sources, std::span<OrtValue* const> destinations,
                                std::span<OrtSyncStream* const> streams) {
  std::vector<Copy> unordered;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Copy copy = plan(sources[i], destinations[i]);
    if (copy.bytes == 0 || copy.source == copy.destination) continue;
    OrtSyncStream* stream = streams.empty() ? nullptr : streams[i];
    const auto handle = stream != nullptr ? static_cast<hipStream_t>(ort_.api->SyncStream_GetHandle(stream)) : nullptr;
    // A stream that is not of these devices, such as another provider's, orders nothing here.
    const auto has_stream = [&](const Lane* lane) { return lane != nullptr && lane->memory->streams().contains(handle); };
    if (stream == nullptr || !(has_stream(copy.lane) || has_stream(copy.other))) {
      unordered.push_back(copy);
      continue;
    }
    copy.lane->memory->device().activate();
    copy.queue(handle);
  }
  for (Lane& lane : lanes_) copy_now(lane, unordered);
}

void DataTransfer::copy_now(Lane& lane, std::span<const Copy> copies) {
  if (std::ranges::none_of(copies, [&](const Copy& copy) { return copy.lane == &lane; })) return;
  hipdnn_rt::Stream stream = take_stream(lane);
  const hipdnn_rt::HipApi& hip = lane.memory->hip();
  lane.memory->device().activate();
  try {
    for (Lane& each : lanes_) {
      const auto involves = [&](const Copy& copy) { return copy.lane == &lane && (&each == &lane || copy.other == &each); };
      if (std::ranges::any_of(copies, involves)) each.memory->streams().wait(std::nullopt, stream.get());
    }
    for (const Copy& copy : copies) {
      if (copy.lane == &lane) copy.queue(stream.get());
    }
    hipdnn_rt::check(hip, hip.stream_synchronize(stream.get()), "hipStreamSynchronize");
  } catch (...) {
    // What is queued already uses the caller's memory.
    hip.stream_synchronize(stream.get());
    throw;
  }
  const std::lock_guard lock(mutex_);
  lane.idle.push_back(std::move(stream));
}

hipdnn_rt::Stream DataTransfer::take_stream(Lane& lane) {
  {
    const std::lock_guard lock(mutex_);
    if (!lane.idle.empty()) {
      hipdnn_rt::Stream stream = std::move(lane.idle.back());
      lane.idle.pop_back();
      return stream;
    }
  }
  return lane.memory->device().create_stream();
}

}  // namespace hipdnn_ep
