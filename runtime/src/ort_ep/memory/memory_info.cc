#include "memory/memory_info.h"

namespace hipdnn_ep {

OrtOwned<OrtMemoryInfo> make_memory_info(const Ort& ort, int ordinal, OrtDeviceMemoryType memory_type) {
  // The names that ONNX Runtime itself has for this vendor's memory.
  const char* name = memory_type == OrtDeviceMemoryType_HOST_ACCESSIBLE ? "HipPinned" : "Hip";
  OrtMemoryInfo* info = nullptr;
  // Alignment 0: ONNX Runtime counts it as part of a device's identity and leaves it at 0 when it looks an allocator up for a device.
  check(ort, ort.api->CreateMemoryInfo_V2(name, OrtMemoryInfoDeviceType_GPU, kVendorId, ordinal, memory_type, 0, OrtDeviceAllocator, &info));
  return {info, ort.api->ReleaseMemoryInfo};
}

}  // namespace hipdnn_ep
