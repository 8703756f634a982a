// Kernels of products with weights of 4 and 8 bits that have a scale for each block along the depth.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hipdnn_port {

/// Columns of a panel of packed weights.
constexpr std::int64_t kPanelColumns = 16;
/// Rows of one call at most: their sums stay in registers.
constexpr std::int64_t kBlockRows = 12;

/// Asks for the weights that come next: the CPU by itself looks less far ahead, and not over the end of a page. From far away into the second
/// level of cache, which has room for more requests than the first.
inline void fetch_ahead(const void* weights) {
  constexpr std::ptrdiff_t near = 2048, far = 8192;
  const auto* const at = static_cast<const std::byte*>(weights);
  __builtin_prefetch(at + near, 0, 3);
  __builtin_prefetch(at + far, 0, 2);
}

/// c[r, n] = sum over blocks b of scale[b, n] * sum over k of block b of a[r, k] * (w[k, n] - zero[b, n]), for the columns of one panel.
struct BlockProductArgs {
  std::int64_t rows = 1;               ///< at most kBlockRows
  std::int64_t blocks = 0;
  std::int64_t block = 0;              ///< elements of a block, a multiple of 8
  const void* a = nullptr;             ///< float, or signed bytes; rows of blocks * block elements
  std::int64_t a_row = 0;              ///< in elements
  const float* a_scale = nullptr;      ///< bytes only: [rows, blocks]
  const std::int32_t* a_sum = nullptr; ///< bytes only: sums of the bytes of a block, [rows, blocks]
  const std::byte* weights = nullptr;  ///< see PackedBlocks
  const float* scale = nullptr;        ///< [blocks, kPanelColumns]
  const std::uint8_t* zero = nullptr;  ///< [blocks, kPanelColumns]; null where all are in the middle, 8 or 128
  float* c = nullptr;
  std::int64_t c_row = 0;
};

/// A row in signed bytes: to = from / scale rounded to nearest even, scale = greatest magnitude of a block / 127.
struct QuantizeArgs {
  const float* from = nullptr;
  std::int64_t blocks = 0;
  std::int64_t block = 0;
  std::int8_t* to = nullptr;
  float* scale = nullptr;
  std::int32_t* sum = nullptr;  ///< of a block of `to`
};

struct BlockKernels {
  using Product = void (*)(const BlockProductArgs&);
  Product floats_by_4;
  Product floats_by_8;
  void (*quantize)(const QuantizeArgs&);
};

/// Products of bytes.
struct BytesKernels {
  BlockKernels::Product bytes_by_4;
  BlockKernels::Product bytes_by_8;
  const char* isa;
};
const BytesKernels& bytes_kernels_vnni();
const BytesKernels& bytes_kernels_avx2();

}  // namespace hipdnn_port
