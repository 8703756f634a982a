// The code of a `map`: parsed and typed, then put in order with a place for every register.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "layout.h"
#include "map_loops.h"

namespace hipdnn_port::kernels {

/// One instruction as the image has it; register numbers are positions in the code.
struct MapInstruction {
  MapOp op = MapOp::load;
  /// Of the result, or of the register a store writes.
  DType dtype = DType::f32;
  std::size_t arity = 0;
  std::array<std::uint32_t, 3> operands{};
  /// Of a load or store.
  std::size_t tensor = 0;
  /// Of an index.
  std::size_t axis = 0;
  /// A constant as its register holds it.
  std::uint64_t bits = 0;
};

/// Every instruction names only earlier registers, of types it takes. Throws KernelError.
std::vector<MapInstruction> parse_map_code(const Image& image);

/// Computes one register of a tile.
struct MapStep {
  MapInstruction instruction;
  std::uint32_t result = 0;
  /// Of the result in the scratch.
  std::size_t slot = 0;
  /// Null for loads, indices and constants.
  MapLoop loop = nullptr;
  /// Rounds a result of 16-bit type, null where it is exact.
  MapLoop rounding = nullptr;
  /// Of a load: from memory; of a constant: from its bits.
  MapMove move = nullptr;
  /// Of a load or an index: the positions it reads.
  Walk walk{};
  /// A load that may leave its elements where they are.
  bool may_alias = false;
};

struct MapStore {
  std::uint32_t source = 0;
  std::size_t tensor = 0;
  DType dtype = DType::f32;
  MapMove move = nullptr;
  Walk walk{};
};

/// Ready to run: results of `once` are the same for all elements and are computed for the first tile of a thread only.
struct MapProgram {
  std::int64_t elements = 0;
  /// Elements of a tile.
  std::int64_t tile = 0;
  std::int64_t slot_bytes = 0;
  std::vector<MapStep> once;
  std::vector<MapStep> each;
  std::vector<MapStore> stores;
  /// The last of `each` may write the output itself, where its run is dense.
  bool writes_output = false;
};

/// Instructions of a program at most; each has a pointer on the stack of a run.
inline constexpr std::size_t max_map_code = 4096;
/// Bytes of scratch of one thread.
inline constexpr std::int64_t map_scratch_bytes = 64 * 1024;

MapProgram compile_map(const Image& image);

}  // namespace hipdnn_port::kernels
