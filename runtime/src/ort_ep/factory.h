// The factory: which devices the provider offers, and the objects ONNX Runtime asks for on them.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ep.h"
#include "logger.h"
#include "memory/device_memory.h"
#include "ort.h"
#include "support/compiler_service.h"

namespace hipdnn_ep {

class DataTransfer;

/// One per registration of the library; outlives all it creates. Safe to use from several threads.
class Factory final : public OrtEpFactory {
 public:
  /// A registration name that ends in ".virtual" asks for a virtual GPU: the GPU parts of the interface over the host's memory.
  Factory(const Ort& ort, const std::string& registration_name, Logger logger, const OrtLogger* raw_logger);
  ~Factory();
  Factory(const Factory&) = delete;
  Factory& operator=(const Factory&) = delete;

  const Ort& ort() const { return ort_; }

 private:
  /// Which device a session runs on.
  struct Choice {
    /// "hip" or "cuda", or "host" for the CPU and the virtual GPU.
    std::string port;
    int ordinal;
    bool is_gpu;
  };
  /// A vendor whose GPUs are looked for.
  struct Vendor {
    const char* port;
    std::uint32_t id;
    const char* name;
  };
  static const std::array<Vendor, 2> kVendors;
  /// A GPU on offer.
  struct Gpu {
    Choice choice;
    OrtOwned<OrtMemoryInfo> device_info;
    OrtOwned<OrtMemoryInfo> pinned_info;
    std::shared_ptr<DeviceMemory> memory;
  };

  void set_identity();
  void set_creators();
  void set_memory_creators();

  void offer_devices(const OrtHardwareDevice* const* devices, std::size_t count, OrtEpDevice** offers, std::size_t capacity,
                     std::size_t* offer_count);
  OrtEpDevice* offer(const OrtHardwareDevice* hardware, const Choice& choice);
  OrtEpDevice* offer_gpu(const OrtHardwareDevice* hardware, const Choice& choice);
  Gpu open_gpu(const Choice& choice);
  /// The first of AMD's GPUs, for an umbrella provider, which asks for no devices on offer: it offers its own, under numbers of its own.
  void find_umbrellas_gpu();
  /// Null, with a line in the log, where the GPU cannot be used.
  OrtEpDevice* try_offer_gpu(const Vendor& vendor, const OrtHardwareDevice* hardware, int ordinal);
  /// A GPU that ONNX Runtime does not know of: a virtual one, or one that it cannot find.
  const OrtHardwareDevice* make_hardware(const Vendor& vendor, bool is_virtual);
  /// GPUs that the vendor's port can use; `is_listed` where ONNX Runtime knows of one.
  std::size_t count_gpus(const Vendor& vendor, bool is_listed) const;

  OrtEp* create_ep(const OrtKeyValuePairs* const* metadata, std::size_t count, const OrtSessionOptions* options, const OrtLogger* logger);
  Choice choose_device(const OrtKeyValuePairs* const* metadata, std::size_t count);
  std::shared_ptr<const hipdnn_rt::Device> open_device(const hipdnn_rt::DeviceOptions& options);
  /// The factory's own, since an umbrella provider asks for one for each session, and releases none; null without GPUs.
  DataTransfer* transfer();
  std::shared_ptr<DeviceMemory> memory_of(const OrtMemoryDevice* device) const;
  std::shared_ptr<DeviceMemory> memory_of(std::uint32_t vendor_id, int ordinal) const;
  OrtCompiledModelCompatibility judge(const OrtHardwareDevice* const* devices, std::size_t count, const char* text);

  Ort ort_;
  Logger logger_;
  const OrtLogger* raw_logger_;
  bool is_virtual_;
  CompilerService compiler_;
  mutable std::mutex mutex_;
  /// Sessions with equal settings share a device, so that equal graphs share plans.
  std::map<hipdnn_rt::DeviceOptions, std::weak_ptr<const hipdnn_rt::Device>> devices_;
  std::vector<Gpu> gpus_;
  /// Whether an umbrella provider's GPU is the only one, and one thread at a time that looks for it.
  bool is_umbrellas_ = false;
  std::mutex looking_mutex_;
  /// Of as many GPUs as there were.
  struct Transfer {
    std::size_t gpus;
    std::unique_ptr<DataTransfer> transfer;
  };
  std::vector<Transfer> transfers_;
  std::vector<OrtOwned<OrtHardwareDevice>> made_hardware_;
};

}  // namespace hipdnn_ep
