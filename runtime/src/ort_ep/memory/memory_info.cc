#include "memory/memory_info.h"

#include <string>

namespace hipdnn_ep {

std::uint32_t vendor_id_of(const hipdnn_rt::Port& port) { return port.name == "cuda" ? kNvidiaVendorId : kAmdVendorId; }

OrtOwned<OrtMemoryInfo> make_memory_info(const Ort& ort, std::uint32_t vendor_id, int ordinal, OrtDeviceMemoryType memory_type) {
  // The names that ONNX Runtime itself has for these vendors' memory.
  std::string name = vendor_id == kNvidiaVendorId ? "Cuda" : "Hip";
  if (memory_type == OrtDeviceMemoryType_HOST_ACCESSIBLE) name += "Pinned";
  OrtMemoryInfo* info = nullptr;
  // Alignment 0: ONNX Runtime counts it as part of a device's identity and leaves it at 0 when it looks an allocator up for a device.
  check(ort, ort.api->CreateMemoryInfo_V2(name.c_str(), OrtMemoryInfoDeviceType_GPU, vendor_id, ordinal, memory_type, 0, OrtDeviceAllocator,
                                          &info));
  return {info, ort.api->ReleaseMemoryInfo};
}

}  // namespace hipdnn_ep
