// A small execution provider on a virtual GPU: its memory, copies and streams are the ones under test, and its only kernel is Abs of numbers
// that are not negative, a copy that is queued on the stream ONNX Runtime gives.
#include "plugin.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "memory/allocator.h"
#include "memory/data_transfer.h"
#include "memory/memory_info.h"
#include "memory/sync_stream.h"

namespace {

using namespace hipdnn_ep;

struct Counters {
  std::atomic<std::size_t> allocs{0}, stream_allocs{0}, copies{0}, stream_copies{0}, computes{0}, stream_computes{0};
};

Counters& counters() {
  static Counters instance;
  return instance;
}

/// The callbacks under test, with calls counted.
class CountedAllocator : public Allocator {
 public:
  template <typename... Arguments>
  explicit CountedAllocator(Arguments&&... arguments) : Allocator(std::forward<Arguments>(arguments)...) {
    static const OrtAllocator original = *this;
    Alloc = [](OrtAllocator* self, std::size_t bytes) noexcept {
      ++counters().allocs;
      return original.Alloc(self, bytes);
    };
    if (AllocOnStream == nullptr) return;
    static const auto on_stream = AllocOnStream;
    AllocOnStream = [](OrtAllocator* self, std::size_t bytes, OrtSyncStream* stream) noexcept {
      ++counters().stream_allocs;
      return on_stream(self, bytes, stream);
    };
  }
};

class CountedTransfer : public DataTransfer {
 public:
  CountedTransfer(const Ort& ort, std::vector<std::shared_ptr<DeviceMemory>> devices) : DataTransfer(ort, std::move(devices)) {
    static const OrtDataTransferImpl original = *this;
    CopyTensors = [](OrtDataTransferImpl* self, const OrtValue** sources, OrtValue** destinations, OrtSyncStream** streams,
                     std::size_t count) noexcept {
      counters().copies += count;
      for (std::size_t i = 0; streams != nullptr && i < count; ++i) counters().stream_copies += streams[i] != nullptr;
      return original.CopyTensors(self, sources, destinations, streams, count);
    };
  }
};

struct Compute : OrtNodeComputeInfo {
  Compute(const Ort& ort_tables, std::shared_ptr<DeviceMemory> device) : OrtNodeComputeInfo{}, ort(ort_tables), memory(std::move(device)) {
    ort_version_supported = ORT_API_VERSION;
    CreateState = [](OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state) noexcept -> OrtStatus* {
      *state = nullptr;
      return nullptr;
    };
    OrtNodeComputeInfo::Compute = [](OrtNodeComputeInfo* self, void*, OrtKernelContext* context) noexcept -> OrtStatus* {
      const auto& compute = *static_cast<const struct Compute*>(self);
      return guard(compute.ort, [&] { compute.run(context); });
    };
    ReleaseState = [](OrtNodeComputeInfo*, void*) noexcept {};
  }

  void run(OrtKernelContext* context) const {
    const OrtApi& api = *ort.api;
    const OrtValue* input = nullptr;
    check(ort, api.KernelContext_GetInput(context, 0, &input));
    OrtTensorTypeAndShapeInfo* shape = nullptr;
    check(ort, api.GetTensorTypeAndShape(input, &shape));
    const OrtOwned<OrtTensorTypeAndShapeInfo> owner(shape, api.ReleaseTensorTypeAndShapeInfo);
    std::array<std::int64_t, 1> dims{};
    check(ort, api.GetDimensions(shape, dims.data(), dims.size()));
    OrtValue* output = nullptr;
    check(ort, api.KernelContext_GetOutput(context, 0, dims.data(), dims.size(), &output));
    std::size_t bytes = 0;
    const void* source = nullptr;
    void* destination = nullptr;
    void* stream = nullptr;
    check(ort, api.GetTensorSizeInBytes(input, &bytes));
    check(ort, api.GetTensorData(input, &source));
    check(ort, api.GetTensorMutableData(output, &destination));
    check(ort, api.KernelContext_GetGPUComputeStream(context, &stream));
    ++counters().computes;
    counters().stream_computes += stream != nullptr;
    // After an operator of the host ONNX Runtime passes host memory, without a copy to the device before.
    hipdnn_rt::check(memory->hip(),
                     memory->hip().memcpy_async(destination, source, bytes, hipMemcpyDefault, static_cast<hipStream_t>(stream)),
                     "hipMemcpyAsync");
  }

  Ort ort;
  std::shared_ptr<DeviceMemory> memory;
};

struct Ep : OrtEp {
  Ep(const Ort& ort_tables, std::shared_ptr<DeviceMemory> device) : OrtEp{}, ort(ort_tables), memory(std::move(device)) {
    ort_version_supported = ORT_API_VERSION;
    GetName = [](const OrtEp*) noexcept { return kPluginEpName; };
    GetCapability = [](OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* support) noexcept -> OrtStatus* {
      const Ort& tables = static_cast<Ep*>(self)->ort;
      return guard(tables, [&] { claim(tables, graph, support); });
    };
    Compile = [](OrtEp* self, const OrtGraph**, const OrtNode**, std::size_t count, OrtNodeComputeInfo** infos,
                 OrtNode**) noexcept -> OrtStatus* {
      const auto& ep = *static_cast<Ep*>(self);
      for (std::size_t i = 0; i < count; ++i) infos[i] = new struct Compute(ep.ort, ep.memory);
      return nullptr;
    };
    ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** infos, std::size_t count) noexcept {
      for (std::size_t i = 0; i < count; ++i) delete static_cast<struct Compute*>(infos[i]);
    };
  }

  static void claim(const Ort& tables, const OrtGraph* graph, OrtEpGraphSupportInfo* support) {
    std::size_t count = 0;
    check(tables, tables.api->Graph_GetNumNodes(graph, &count));
    std::vector<const OrtNode*> nodes(count);
    check(tables, tables.api->Graph_GetNodes(graph, nodes.data(), count));
    for (const OrtNode* node : nodes) {
      const char* type = nullptr;
      check(tables, tables.api->Node_GetOperatorType(node, &type));
      if (std::strcmp(type, "Abs") == 0) check(tables, tables.ep->EpGraphSupportInfo_AddNodesToFuse(support, &node, 1, nullptr));
    }
  }

  Ort ort;
  std::shared_ptr<DeviceMemory> memory;
};

struct Factory : OrtEpFactory {
  Factory(const Ort& tables, const OrtLogger* default_logger)
      : OrtEpFactory{},
        ort(tables),
        logger(default_logger),
        memory(open()),
        device_info(make_memory_info(ort, kAmdVendorId, 0, OrtDeviceMemoryType_DEFAULT)),
        pinned_info(make_memory_info(ort, kAmdVendorId, 0, OrtDeviceMemoryType_HOST_ACCESSIBLE)) {
    ort_version_supported = ORT_API_VERSION;
    GetName = [](const OrtEpFactory*) noexcept { return kPluginEpName; };
    GetVendor = [](const OrtEpFactory*) noexcept { return "test"; };
    GetVendorId = [](const OrtEpFactory*) noexcept -> std::uint32_t { return kAmdVendorId; };
    GetVersion = [](const OrtEpFactory*) noexcept { return "1.0.0"; };
    IsStreamAware = [](const OrtEpFactory*) noexcept { return true; };
    GetSupportedDevices = [](OrtEpFactory* self, const OrtHardwareDevice* const*, std::size_t, OrtEpDevice** devices, std::size_t,
                             std::size_t* count) noexcept -> OrtStatus* {
      return guard(of(self).ort, [&] {
        devices[0] = of(self).offer();
        *count = 1;
      });
    };
    CreateEp = [](OrtEpFactory* self, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, std::size_t, const OrtSessionOptions*,
                  const OrtLogger*, OrtEp** ep) noexcept -> OrtStatus* {
      *ep = new Ep(of(self).ort, of(self).memory);
      return nullptr;
    };
    ReleaseEp = [](OrtEpFactory*, OrtEp* ep) noexcept { delete static_cast<Ep*>(ep); };
    CreateAllocator = [](OrtEpFactory* self, const OrtMemoryInfo* info, const OrtKeyValuePairs*, OrtAllocator** allocator) noexcept {
      return guard(of(self).ort, [&] { *allocator = new CountedAllocator(of(self).ort, of(self).memory, info, of(self).logger); });
    };
    ReleaseAllocator = [](OrtEpFactory*, OrtAllocator* allocator) noexcept { Allocator::release(allocator); };
    CreateDataTransfer = [](OrtEpFactory* self, OrtDataTransferImpl** transfer) noexcept -> OrtStatus* {
      return guard(of(self).ort, [&] { *transfer = new CountedTransfer(of(self).ort, {of(self).memory}); });
    };
    CreateSyncStreamForDevice = [](OrtEpFactory* self, const OrtMemoryDevice*, const OrtKeyValuePairs* options,
                                   OrtSyncStreamImpl** stream) noexcept -> OrtStatus* {
      return guard(of(self).ort, [&] {
        const char* existing = options == nullptr ? nullptr : of(self).ort.api->GetKeyValue(options, kUserComputeStream);
        *stream = new SyncStream(of(self).ort, of(self).memory, existing == nullptr ? nullptr : parse_user_stream(existing));
      });
    };
  }

  static Factory& of(OrtEpFactory* base) { return *static_cast<Factory*>(base); }

  static std::shared_ptr<DeviceMemory> open() {
    auto library = hipdnn_rt::Library::open(std::getenv(kPluginPort), std::getenv(kPluginDirectory));
    return std::make_shared<DeviceMemory>(std::make_shared<const hipdnn_rt::Device>(std::move(library), hipdnn_rt::DeviceOptions{.compare_plans = false}));
  }

  OrtEpDevice* offer() {
    OrtKeyValuePairs* metadata = nullptr;
    ort.api->CreateKeyValuePairs(&metadata);
    const OrtOwned<OrtKeyValuePairs> owner(metadata, ort.api->ReleaseKeyValuePairs);
    ort.api->AddKeyValuePair(metadata, "is_virtual", "1");
    OrtHardwareDevice* raw = nullptr;
    check(ort, ort.ep->CreateHardwareDevice(OrtHardwareDeviceType_GPU, kAmdVendorId, 0, "AMD", metadata, &raw));
    hardware.reset(raw);
    OrtEpDevice* device = nullptr;
    check(ort, ort.ep->CreateEpDevice(this, raw, nullptr, nullptr, &device));
    check(ort, ort.ep->EpDevice_AddAllocatorInfo(device, device_info.get()));
    check(ort, ort.ep->EpDevice_AddAllocatorInfo(device, pinned_info.get()));
    return device;
  }

  Ort ort;
  const OrtLogger* logger;
  std::shared_ptr<DeviceMemory> memory;
  OrtOwned<OrtMemoryInfo> device_info;
  OrtOwned<OrtMemoryInfo> pinned_info;
  OrtOwned<OrtHardwareDevice> hardware{nullptr, ort.ep->ReleaseHardwareDevice};
};

}  // namespace

#define PLUGIN_EXPORT __attribute__((visibility("default")))

extern "C" {

PLUGIN_EXPORT PluginCounts pluginCounts() {
  const Counters& now = counters();
  return {now.allocs, now.stream_allocs, now.copies, now.stream_copies, now.computes, now.stream_computes};
}

PLUGIN_EXPORT OrtStatus* CreateEpFactories(const char*, const OrtApiBase* base, const OrtLogger* logger, OrtEpFactory** factories,
                                           std::size_t, std::size_t* count) {
  const OrtApi* api = base->GetApi(ORT_API_VERSION);
  const Ort ort{api, api->GetEpApi(), api->GetModelEditorApi()};
  return guard(ort, [&] {
    factories[0] = new Factory(ort, logger);
    *count = 1;
  });
}

PLUGIN_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  delete static_cast<Factory*>(factory);
  return nullptr;
}

}  // extern "C"
