// How ONNX Runtime is told where this provider's memory lies.
#pragma once

#include <cstdint>

#include "device/library.h"
#include "ort.h"

namespace hipdnn_ep {

/// PCI vendor ids. AMD's is the provider's own too, and that of a virtual device.
inline constexpr std::uint32_t kAmdVendorId = 0x1002;
inline constexpr std::uint32_t kNvidiaVendorId = 0x10DE;

/// The vendor id that memory of the port's devices carries: ONNX Runtime tells memory apart by vendor, device and kind.
std::uint32_t vendor_id_of(const hipdnn_rt::Port& port);

/// Device memory of the vendor's GPU `ordinal`, or, for OrtDeviceMemoryType_HOST_ACCESSIBLE, host memory pinned for it.
OrtOwned<OrtMemoryInfo> make_memory_info(const Ort& ort, std::uint32_t vendor_id, int ordinal, OrtDeviceMemoryType memory_type);

}  // namespace hipdnn_ep
