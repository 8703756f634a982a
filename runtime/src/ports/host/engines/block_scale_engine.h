// The engine for numbers of 8 bits that share a scale per block.
#pragma once

#include "frontend/engine.h"

namespace hipdnn_port {

/// HOST_BLOCK_SCALE_ENGINE: one block scale quantize or dequantize. Quantized numbers are fp8 e4m3, e5m2 or int8; scales fp8 e8m0 or e4m3
/// or float32; the other side float32, float16 or bfloat16. A block's scale is its greatest magnitude over the quantized type's, rounded up
/// to the scale's type; quotients are rounded to nearest even.
const Engine& block_scale_engine();

}  // namespace hipdnn_port
