// Weights of 4 and 8 bits with a scale for each block, in the order in which the kernels read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "frontend/graph.h"

namespace hipdnn_port {

/// Elements of a block at most: they lie on the stack while they are packed.
constexpr std::int64_t kLargestBlock = 4096;

/// Panels of kPanelColumns columns. A cache line holds, for each column, 4 bytes: 4 codes of 8 bits, or 8 of 4 bits of which byte j has
/// code j in its lower half and code j + 4 in its upper one. Codes are not negative: number + zero.
struct PackedBlocks {
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  std::int64_t block = 0;   ///< along the depth, a multiple of 8; the last one is filled up
  std::int64_t blocks = 0;
  std::int64_t panels = 0;
  int bits = 4;
  bool has_zeros = false;
  std::shared_ptr<void> memory;   ///< null where the parts lie in somebody else's
  std::byte* weights = nullptr;   ///< [panels, blocks * block * bits / 32 cache lines]
  float* scales = nullptr;        ///< [panels, blocks, kPanelColumns]
  std::uint8_t* zeros = nullptr;  ///< [panels, blocks, kPanelColumns]; null where all are in the middle

  std::int64_t panel_bytes() const { return blocks * block * bits * 2; }
  /// Of all parts.
  std::int64_t bytes() const;
  /// Set the parts to `memory`, which starts on a cache line.
  void lie_at(std::byte* memory);
};

/// How numbers and scales lie in memory: `numbers` int4 or int8 [..., depth, columns], `scales` [..., depth / block, columns] of
/// float32, float16 or bfloat16.
struct StoredBlocks {
  const Tensor* numbers = nullptr;
  const Tensor* scales = nullptr;
  std::int64_t block = 0;
};

/// The sizes of packed blocks, in as many bits as they are stored.
PackedBlocks unplaced_blocks(const StoredBlocks& stored);
/// Fill the parts, which have their places.
void pack_blocks(PackedBlocks& packed, const StoredBlocks& stored, const void* numbers, const void* scales);
/// Packed. Numbers of 8 bits whose blocks need no more than 4 are packed so. Thread-safe; plans for the same constants share what they hold.
std::shared_ptr<const PackedBlocks> packed_blocks(const StoredBlocks& stored, const void* numbers, const void* scales);

}  // namespace hipdnn_port
