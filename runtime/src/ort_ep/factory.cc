#include "factory.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "memory/allocator.h"
#include "memory/data_transfer.h"
#include "memory/memory_info.h"
#include "memory/sync_stream.h"
#include "names.h"
#include "storage/disk_cache.h"

namespace hipdnn_ep {
namespace {

constexpr const char* kPortKey = "hipdnn_port";
constexpr const char* kOrdinalKey = "hipdnn_ordinal";
constexpr const char* kMemoryKey = "hipdnn_memory";
constexpr const char* kVirtualSuffix = ".virtual";

/// The user's folder for plans where these are costly: the libraries of GPUs compile code or search for a plan.
std::string plan_folder(const Options& options, const std::string& port) {
  if (options.plan_cache == "none") return "";
  if (!options.plan_cache.empty()) return options.plan_cache;
  const std::string directory = options.cache_dir.empty() ? hipdnn_rt::default_cache_directory() : options.cache_dir;
  const bool is_kept = port != "host" && options.cache_limit_mb > 0 && !directory.empty();
  return is_kept ? directory + "/plans" : "";
}

Factory* self_of(OrtEpFactory* factory) { return static_cast<Factory*>(factory); }

OrtOwned<OrtKeyValuePairs> make_pairs(const Ort& ort) {
  OrtKeyValuePairs* raw = nullptr;
  ort.api->CreateKeyValuePairs(&raw);
  return {raw, ort.api->ReleaseKeyValuePairs};
}

}  // namespace

constexpr std::array<Factory::Vendor, 2> Factory::kVendors{{{"hip", kAmdVendorId, "AMD"}, {"cuda", kNvidiaVendorId, "NVIDIA"}}};

Factory::Factory(const Ort& ort, const std::string& registration_name, Logger logger, const OrtLogger* raw_logger)
    : OrtEpFactory{},
      ort_(ort),
      logger_(logger),
      raw_logger_(raw_logger),
      is_virtual_(std::string_view(registration_name).ends_with(kVirtualSuffix)) {
  ort_version_supported = ORT_API_VERSION;
  set_identity();
  set_creators();
  set_memory_creators();
}

Factory::~Factory() = default;

void Factory::set_identity() {
  GetName = [](const OrtEpFactory*) noexcept { return kEpName; };
  GetVendor = [](const OrtEpFactory*) noexcept { return kVendor; };
  GetVendorId = [](const OrtEpFactory*) noexcept { return kAmdVendorId; };
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
      std::shared_ptr<DeviceMemory> memory = self->memory_of(self->ort_.ep->MemoryInfo_GetMemoryDevice(info));
      *allocator = std::make_unique<Allocator>(self->ort_, std::move(memory), info, self->raw_logger_).release();
    });
  };
  ReleaseAllocator = [](OrtEpFactory*, OrtAllocator* allocator) noexcept { Allocator::release(allocator); };
  CreateDataTransfer = [](OrtEpFactory* factory, OrtDataTransferImpl** transfer) noexcept {
    *transfer = nullptr;
    Factory* self = self_of(factory);
    return guard(self->ort_, [&] { *transfer = self->transfer(); });
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
      std::shared_ptr<DeviceMemory> memory = self->memory_of(device);
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
  // GPUs come first: of a provider that a session names without a device, ONNX Runtime takes the first. One place is left for the CPU.
  const std::size_t gpu_capacity = capacity == 0 ? 0 : capacity - 1;
  if (is_virtual_ && gpu_capacity > 0) add(offer_gpu(make_hardware(kVendors.front(), true), {"host", 0, true}));
  for (const Vendor& vendor : is_virtual_ ? std::span<const Vendor>() : std::span<const Vendor>(kVendors)) {
    std::vector<const OrtHardwareDevice*> gpus;
    std::copy_if(devices, devices + count, std::back_inserter(gpus), [&](const OrtHardwareDevice* device) {
      return ort_.api->HardwareDevice_Type(device) == OrtHardwareDeviceType_GPU && ort_.api->HardwareDevice_VendorId(device) == vendor.id;
    });
    // ONNX Runtime and the port number GPUs alike unless the port is told otherwise by its environment; neither names the other's. What ONNX
    // Runtime finds is what the display system has, which in a container is often nothing.
    const std::size_t usable = count_gpus(vendor, !gpus.empty());
    for (std::size_t i = 0; i < usable && *offer_count < gpu_capacity; ++i) {
      add(try_offer_gpu(vendor, i < gpus.size() ? gpus[i] : make_hardware(vendor, false), static_cast<int>(i)));
    }
  }
  for (std::size_t i = 0; i < count && *offer_count < capacity; ++i) {
    if (ort_.api->HardwareDevice_Type(devices[i]) == OrtHardwareDeviceType_CPU) add(offer(devices[i], {"host", 0, false}));
  }
}

OrtEpDevice* Factory::try_offer_gpu(const Vendor& vendor, const OrtHardwareDevice* hardware, int ordinal) {
  try {
    return offer_gpu(hardware, {vendor.port, ordinal, true});
  } catch (const hipdnn_rt::DeviceError& error) {
    logger_.warning(std::string(vendor.name) + " GPU " + std::to_string(ordinal) + " is left out: " + error.what());
    return nullptr;
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

Factory::Gpu Factory::open_gpu(const Choice& choice) {
  auto memory = std::make_shared<DeviceMemory>(open_device({.port = choice.port, .device = choice.ordinal, .compare_plans = false}));
  return {choice, make_memory_info(ort_, memory->vendor_id(), choice.ordinal, OrtDeviceMemoryType_DEFAULT),
          make_memory_info(ort_, memory->vendor_id(), choice.ordinal, OrtDeviceMemoryType_HOST_ACCESSIBLE), memory};
}

void Factory::find_umbrellas_gpu() {
  const Vendor& vendor = kVendors.front();
  const std::lock_guard looking(looking_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (!gpus_.empty()) return;
  }
  if (!is_virtual_ && count_gpus(vendor, true) == 0) return;
  Gpu gpu = open_gpu({is_virtual_ ? "host" : vendor.port, 0, true});
  const std::lock_guard lock(mutex_);
  gpus_.push_back(std::move(gpu));
  is_umbrellas_ = true;
}

DataTransfer* Factory::transfer() {
  const std::lock_guard lock(mutex_);
  if (gpus_.empty()) return nullptr;
  if (transfers_.empty() || transfers_.back().gpus != gpus_.size()) {
    std::vector<std::shared_ptr<DeviceMemory>> memories;
    for (const Gpu& gpu : gpus_) memories.push_back(gpu.memory);
    auto made = std::make_unique<DataTransfer>(ort_, std::move(memories), is_umbrellas_);
    made->Release = [](OrtDataTransferImpl*) noexcept {};
    transfers_.push_back({gpus_.size(), std::move(made)});
  }
  return transfers_.back().transfer.get();
}

OrtEpDevice* Factory::offer_gpu(const OrtHardwareDevice* hardware, const Choice& choice) {
  Gpu gpu = open_gpu(choice);
  OrtOwned<OrtEpDevice> device(offer(hardware, choice), ort_.ep->ReleaseEpDevice);
  check(ort_, ort_.ep->EpDevice_AddAllocatorInfo(device.get(), gpu.device_info.get()));
  if (gpu.memory->device().has_pinned_memory()) check(ort_, ort_.ep->EpDevice_AddAllocatorInfo(device.get(), gpu.pinned_info.get()));
  const std::lock_guard lock(mutex_);
  gpus_.push_back(std::move(gpu));
  return device.release();
}

const OrtHardwareDevice* Factory::make_hardware(const Vendor& vendor, bool is_virtual) {
  const OrtOwned<OrtKeyValuePairs> metadata = make_pairs(ort_);
  if (is_virtual) ort_.api->AddKeyValuePair(metadata.get(), "is_virtual", "1");
  OrtHardwareDevice* raw = nullptr;
  check(ort_, ort_.ep->CreateHardwareDevice(OrtHardwareDeviceType_GPU, vendor.id, 0, vendor.name, metadata.get(), &raw));
  return made_hardware_.emplace_back(raw, ort_.ep->ReleaseHardwareDevice).get();
}

std::size_t Factory::count_gpus(const Vendor& vendor, bool is_listed) const {
  try {
    const auto library = hipdnn_rt::Library::open(vendor.port);
    int count = 0;
    hipdnn_rt::check(library->hip(), library->hip().get_device_count(&count), "hipGetDeviceCount");
    return static_cast<std::size_t>(count);
  } catch (const hipdnn_rt::DeviceError& error) {
    // Most machines have no GPU of the vendor's, and then there is nothing to say.
    if (is_listed) logger_.warning("a GPU of " + std::string(vendor.name) + " is there but cannot be used: " + error.what());
    return 0;
  }
}

Factory::Choice Factory::choose_device(const OrtKeyValuePairs* const* metadata, std::size_t count) {
  const Choice cpu{"host", 0, false};
  if (metadata == nullptr || count == 0) {
    // An umbrella provider passes no device: the best on offer, or that there is.
    find_umbrellas_gpu();
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
    Ep::Settings settings{parse_options(given_options(ort_, session)), read_context_settings(ort_, session), {}, nullptr, "", nullptr, nullptr};
    const Options& options = settings.options;
    const Choice choice = choose_device(metadata, count);
    hipdnn_rt::DeviceOptions device = options;
    device.port = choice.port;
    device.device = choice.ordinal;
    device.plan_cache = plan_folder(options, choice.port);
    settings.open_device = [this, device](bool allows_tf32) {
      hipdnn_rt::DeviceOptions settled = device;
      settled.tf32 = allows_tf32;
      return open_device(settled);
    };
    settings.device = {settings.open_device(options.tf32.value_or(options.precision == "tf32")), choice.is_gpu};
    if (choice.is_gpu) settings.memory = memory_of(vendor_id_of(settings.device.device->port()), choice.ordinal);
    settings.target = options.target.empty() ? settings.device.device->target() : options.target;
    settings.user_stream = parse_user_stream(options.user_compute_stream);
    check_effects(options, choice.is_gpu, settings.target);
    return new Ep(ort_, std::move(settings), compiler_, logger);
  } catch (const hipdnn_rt::Error& error) {
    return new Ep(ort_, error.what(), logger);
  }
}

std::shared_ptr<const hipdnn_rt::Device> Factory::open_device(const hipdnn_rt::DeviceOptions& options) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const hipdnn_rt::Device>& known = devices_[options];
  if (auto device = known.lock()) return device;
  const auto log = [logger = logger_](hipdnnSeverity_t severity, const std::string& line) {
    if (severity == HIPDNN_SEV_INFO) {
      logger.verbose(line);
    } else {
      logger.warning(line);
    }
  };
  auto device = std::make_shared<const hipdnn_rt::Device>(hipdnn_rt::Library::open(options.port), options, hipdnn_rt::DeviceEnvironment{.log = log});
  known = device;
  return device;
}

std::shared_ptr<DeviceMemory> Factory::memory_of(const OrtMemoryDevice* device) const {
  return memory_of(ort_.ep->MemoryDevice_GetVendorId(device), static_cast<int>(ort_.ep->MemoryDevice_GetDeviceId(device)));
}

std::shared_ptr<DeviceMemory> Factory::memory_of(std::uint32_t vendor_id, int ordinal) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(gpus_.begin(), gpus_.end(), [&](const Gpu& gpu) {
    return gpu.memory->vendor_id() == vendor_id && (is_umbrellas_ || gpu.choice.ordinal == ordinal);
  });
  if (found == gpus_.end()) throw hipdnn_rt::InputError("device " + std::to_string(ordinal) + " is none of this provider's");
  return found->memory;
}

OrtCompiledModelCompatibility Factory::judge(const OrtHardwareDevice* const* devices, std::size_t count, const char* text) {
  std::string port = "host";
  for (const Vendor& vendor : kVendors) {
    const bool is_wanted = std::any_of(devices, devices + count, [&](const OrtHardwareDevice* device) {
      return ort_.api->HardwareDevice_Type(device) == OrtHardwareDeviceType_GPU && ort_.api->HardwareDevice_VendorId(device) == vendor.id;
    });
    if (is_wanted && !is_virtual_) port = vendor.port;
  }
  const auto device = open_device({.port = port, .compare_plans = false});
  const std::string own = compatibility_text(device->library().version(), device->target());
  const Compatibility found = judge_compatibility(text, own, *device);
  if (!found.reason.empty()) logger_.warning("a compiled model is not compatible: " + found.reason);
  return found.verdict;
}

}  // namespace hipdnn_ep
