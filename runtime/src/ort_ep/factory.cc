#include "factory.h"

#include <algorithm>
#include <string_view>

#include "memory/allocator.h"
#include "memory/data_transfer.h"
#include "memory/memory_info.h"
#include "memory/sync_stream.h"
#include "names.h"

namespace hipdnn_ep {
namespace {

constexpr const char* kPortKey = "hipdnn_port";
constexpr const char* kOrdinalKey = "hipdnn_ordinal";
constexpr const char* kMemoryKey = "hipdnn_memory";
constexpr const char* kVirtualSuffix = ".virtual";

Factory* self_of(OrtEpFactory* factory) { return static_cast<Factory*>(factory); }

OrtOwned<OrtKeyValuePairs> make_pairs(const Ort& ort) {
  OrtKeyValuePairs* raw = nullptr;
  ort.api->CreateKeyValuePairs(&raw);
  return {raw, ort.api->ReleaseKeyValuePairs};
}

}  // namespace

Factory::Factory(const Ort& ort, const std::string& registration_name, Logger logger, const OrtLogger* raw_logger)
    : OrtEpFactory{},
      ort_(ort),
      logger_(logger),
      raw_logger_(raw_logger),
      is_virtual_(std::string_view(registration_name).ends_with(kVirtualSuffix)),
      virtual_gpu_(nullptr, ort.ep->ReleaseHardwareDevice) {
  ort_version_supported = ORT_API_VERSION;
  set_identity();
  set_creators();
  set_memory_creators();
}

Factory::~Factory() = default;

void Factory::set_identity() {
  GetName = [](const OrtEpFactory*) noexcept { return kEpName; };
  GetVendor = [](const OrtEpFactory*) noexcept { return kVendor; };
  GetVendorId = [](const OrtEpFactory*) noexcept { return kVendorId; };
  GetVersion = [](const OrtEpFactory*) noexcept -> const char* { return HIPDNN_MLIR_VERSION; };
  GetNumCustomOpDomains = [](OrtEpFactory*, size_t* count) noexcept -> OrtStatus* {
    *count = 0;
    return nullptr;
  };
  GetCustomOpDomains = [](OrtEpFactory*, OrtCustomOpDomain**, size_t) noexcept -> OrtStatus* { return nullptr; };
  ValidateCompiledModelCompatibilityInfo = [](OrtEpFactory* factory, const OrtHardwareDevice* const* devices, size_t count, const char* text,
                                              OrtCompiledModelCompatibility* verdict) noexcept {
    return guard(self_of(factory)->ort_, [&] { *verdict = self_of(factory)->judge(devices, count, text); });
  };
}

void Factory::set_creators() {
  OrtEpFactory::GetSupportedDevices = [](OrtEpFactory* factory, const OrtHardwareDevice* const* devices, size_t count, OrtEpDevice** offers,
                                         size_t capacity, size_t* offer_count) noexcept {
    *offer_count = 0;
    return guard(self_of(factory)->ort_, [&] { self_of(factory)->offer_devices(devices, count, offers, capacity, offer_count); });
  };
  CreateEp = [](OrtEpFactory* factory, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const* metadata, size_t count,
                const OrtSessionOptions* options, const OrtLogger* logger, OrtEp** ep) noexcept {
    *ep = nullptr;
    return guard(self_of(factory)->ort_, [&] { *ep = self_of(factory)->create_ep(metadata, count, options, logger); });
  };
  ReleaseEp = [](OrtEpFactory*, OrtEp* ep) noexcept { delete static_cast<Ep*>(ep); };
}

void Factory::set_memory_creators() {
  OrtEpFactory::CreateAllocator = [](OrtEpFactory* factory, const OrtMemoryInfo* info, const OrtKeyValuePairs*,
                                     OrtAllocator** allocator) noexcept {
    *allocator = nullptr;
    Factory* self = self_of(factory);
    return guard(self->ort_, [&] {
      const std::uint32_t ordinal = self->ort_.ep->MemoryDevice_GetDeviceId(self->ort_.ep->MemoryInfo_GetMemoryDevice(info));
      *allocator = std::make_unique<Allocator>(self->ort_, self->memory_of(ordinal), info, self->raw_logger_).release();
    });
  };
  ReleaseAllocator = [](OrtEpFactory*, OrtAllocator* allocator) noexcept { Allocator::release(allocator); };
  CreateDataTransfer = [](OrtEpFactory* factory, OrtDataTransferImpl** transfer) noexcept {
    *transfer = nullptr;
    Factory* self = self_of(factory);
    return guard(self->ort_, [&] {
      const std::lock_guard lock(self->mutex_);
      std::vector<std::shared_ptr<DeviceMemory>> memories;
      for (const Gpu& gpu : self->gpus_) memories.push_back(gpu.memory);
      if (!memories.empty()) *transfer = std::make_unique<DataTransfer>(self->ort_, std::move(memories)).release();
    });
  };
  IsStreamAware = [](const OrtEpFactory* factory) noexcept {
    const auto* self = static_cast<const Factory*>(factory);
    const std::lock_guard lock(self->mutex_);
    return !self->gpus_.empty();
  };
  CreateSyncStreamForDevice = [](OrtEpFactory* factory, const OrtMemoryDevice* device, const OrtKeyValuePairs* options,
                                 OrtSyncStreamImpl** stream) noexcept {
    *stream = nullptr;
    Factory* self = self_of(factory);
    return guard(self->ort_, [&] {
      std::shared_ptr<DeviceMemory> memory = self->memory_of(self->ort_.ep->MemoryDevice_GetDeviceId(device));
      const char* existing = options == nullptr ? nullptr : self->ort_.api->GetKeyValue(options, kUserComputeStream);
      *stream = new SyncStream(self->ort_, std::move(memory), existing == nullptr ? nullptr : parse_user_stream(existing));
    });
  };
}

void Factory::offer_devices(const OrtHardwareDevice* const* devices, std::size_t count, OrtEpDevice** offers, std::size_t capacity,
                            std::size_t* offer_count) {
  const auto add = [&](OrtEpDevice* device) {
    if (device != nullptr) offers[(*offer_count)++] = device;
  };
  std::vector<const OrtHardwareDevice*> amd_gpus;
  for (std::size_t i = 0; i < count && *offer_count < capacity; ++i) {
    const OrtHardwareDeviceType type = ort_.api->HardwareDevice_Type(devices[i]);
    if (type == OrtHardwareDeviceType_CPU) add(offer(devices[i], {"host", 0, false}));
    if (type == OrtHardwareDeviceType_GPU && ort_.api->HardwareDevice_VendorId(devices[i]) == kVendorId) amd_gpus.push_back(devices[i]);
  }
  if (is_virtual_) {
    if (*offer_count < capacity) add(offer_gpu(virtual_gpu(), {"host", 0, true}));
    return;
  }
  if (amd_gpus.empty()) return;
  // ONNX Runtime and HIP number GPUs alike unless HIP is told otherwise by its environment; neither names the other's.
  const auto usable = std::min(amd_gpus.size(), static_cast<std::size_t>(count_amd_gpus()));
  for (std::size_t i = 0; i < usable && *offer_count < capacity; ++i) {
    try {
      add(offer_gpu(amd_gpus[i], {"hip", static_cast<int>(i), true}));
    } catch (const hipdnn_rt::DeviceError& error) {
      logger_.warning("AMD GPU " + std::to_string(i) + " is left out: " + error.what());
    }
  }
}

OrtEpDevice* Factory::offer(const OrtHardwareDevice* hardware, const Choice& choice) {
  const OrtOwned<OrtKeyValuePairs> metadata = make_pairs(ort_);
  ort_.api->AddKeyValuePair(metadata.get(), kPortKey, choice.port.c_str());
  ort_.api->AddKeyValuePair(metadata.get(), kOrdinalKey, std::to_string(choice.ordinal).c_str());
  ort_.api->AddKeyValuePair(metadata.get(), kMemoryKey, choice.is_gpu ? "device" : "host");
  OrtEpDevice* device = nullptr;
  check(ort_, ort_.ep->CreateEpDevice(this, hardware, metadata.get(), nullptr, &device));
  return device;
}

OrtEpDevice* Factory::offer_gpu(const OrtHardwareDevice* hardware, const Choice& choice) {
  Gpu gpu{choice, make_memory_info(ort_, choice.ordinal, OrtDeviceMemoryType_DEFAULT),
          make_memory_info(ort_, choice.ordinal, OrtDeviceMemoryType_HOST_ACCESSIBLE), nullptr};
  gpu.memory = std::make_shared<DeviceMemory>(open_device(choice.port, choice.ordinal, 0));
  OrtOwned<OrtEpDevice> device(offer(hardware, choice), ort_.ep->ReleaseEpDevice);
  check(ort_, ort_.ep->EpDevice_AddAllocatorInfo(device.get(), gpu.device_info.get()));
  if (gpu.memory->device().has_pinned_memory()) check(ort_, ort_.ep->EpDevice_AddAllocatorInfo(device.get(), gpu.pinned_info.get()));
  const std::lock_guard lock(mutex_);
  gpus_.push_back(std::move(gpu));
  return device.release();
}

const OrtHardwareDevice* Factory::virtual_gpu() {
  const OrtOwned<OrtKeyValuePairs> metadata = make_pairs(ort_);
  ort_.api->AddKeyValuePair(metadata.get(), "is_virtual", "1");
  OrtHardwareDevice* raw = nullptr;
  check(ort_, ort_.ep->CreateHardwareDevice(OrtHardwareDeviceType_GPU, kVendorId, 0, kVendor, metadata.get(), &raw));
  virtual_gpu_.reset(raw);
  return raw;
}

int Factory::count_amd_gpus() {
  try {
    const auto library = hipdnn_rt::Library::open("hip");
    int count = 0;
    hipdnn_rt::check(library->hip(), library->hip().get_device_count(&count), "hipGetDeviceCount");
    return count;
  } catch (const hipdnn_rt::DeviceError& error) {
    logger_.warning(std::string("an AMD GPU is there but cannot be used: ") + error.what());
    return 0;
  }
}

Factory::Choice Factory::choose_device(const OrtKeyValuePairs* const* metadata, std::size_t count) const {
  const Choice cpu{"host", 0, false};
  if (metadata == nullptr || count == 0) {
    // An umbrella provider passes no device: the best on offer.
    const std::lock_guard lock(mutex_);
    return gpus_.empty() ? cpu : gpus_.front().choice;
  }
  const auto value = [&](const char* key) {
    const char* found = metadata[0] == nullptr ? nullptr : ort_.api->GetKeyValue(metadata[0], key);
    return std::string(found == nullptr ? "" : found);
  };
  if (value(kPortKey).empty() || value(kOrdinalKey).empty()) return cpu;
  return {value(kPortKey), std::stoi(value(kOrdinalKey)), value(kMemoryKey) == "device"};
}

OrtEp* Factory::create_ep(const OrtKeyValuePairs* const* metadata, std::size_t count, const OrtSessionOptions* session,
                          const OrtLogger* session_logger) {
  const Logger logger(ort_, session_logger);
  try {
    Ep::Settings settings{parse_options(given_options(ort_, session)), read_context_settings(ort_, session), {}, nullptr, ""};
    const Choice choice = choose_device(metadata, count);
    settings.device = {open_device(choice.port, choice.ordinal, settings.options.threads), choice.is_gpu};
    if (choice.is_gpu) settings.memory = memory_of(static_cast<std::uint32_t>(choice.ordinal));
    settings.target = settings.options.target.empty() ? settings.device.device->target() : settings.options.target;
    return new Ep(ort_, std::move(settings), compiler_, logger);
  } catch (const hipdnn_rt::Error& error) {
    return new Ep(ort_, error.what(), logger);
  }
}

std::shared_ptr<const hipdnn_rt::Device> Factory::open_device(const std::string& port, int ordinal, int threads) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const hipdnn_rt::Device>& known = devices_[{port, ordinal, threads}];
  if (auto device = known.lock()) return device;
  auto device = std::make_shared<const hipdnn_rt::Device>(hipdnn_rt::Library::open(port), hipdnn_rt::Device::Options{ordinal, threads});
  known = device;
  return device;
}

std::shared_ptr<DeviceMemory> Factory::memory_of(std::uint32_t ordinal) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(gpus_.begin(), gpus_.end(), [&](const Gpu& gpu) { return gpu.choice.ordinal == static_cast<int>(ordinal); });
  if (found == gpus_.end()) throw hipdnn_rt::InputError("device " + std::to_string(ordinal) + " is none of this provider's");
  return found->memory;
}

OrtCompiledModelCompatibility Factory::judge(const OrtHardwareDevice* const* devices, std::size_t count, const char* text) {
  const bool wants_gpu = std::any_of(devices, devices + count, [&](const OrtHardwareDevice* device) {
    return ort_.api->HardwareDevice_Type(device) == OrtHardwareDeviceType_GPU;
  });
  const std::string port = wants_gpu && !is_virtual_ ? "hip" : "host";
  const auto device = open_device(port, 0, 0);
  const Compatibility found = judge_compatibility(text, compatibility_text(device->library(), device->target(), hipdnn_rt::kProgramFormat));
  if (!found.reason.empty()) logger_.warning("a compiled model is not compatible: " + found.reason);
  return found.verdict;
}

}  // namespace hipdnn_ep
