// How ONNX Runtime is told where this provider's memory lies.
#pragma once

#include <cstdint>

#include "ort.h"

namespace hipdnn_ep {

/// AMD's PCI vendor id, which every piece of memory of this provider carries, that of a virtual device included.
inline constexpr std::uint32_t kVendorId = 0x1002;

/// Device memory of GPU `ordinal`, or, for OrtDeviceMemoryType_HOST_ACCESSIBLE, host memory pinned for it.
OrtOwned<OrtMemoryInfo> make_memory_info(const Ort& ort, int ordinal, OrtDeviceMemoryType memory_type);

}  // namespace hipdnn_ep
