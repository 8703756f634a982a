// A row program bound to a tiling: kernels, scratch offsets and operand addresses, ready to run on any tile without allocating.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels_tile.h"
#include "rowwise_program.h"
#include "rowwise_tiling.h"

namespace hipdnn_port {

constexpr std::size_t max_operands = 64;

/// Memory an instruction list reads or writes, or the index along an axis (no pointer).
struct TileOperand {
  int tensor = -1;   // into Graph::tensors
  int pointer = -1;  // position in Plan::uids(); -1 for an axis index
  hipdnnDataType_t dtype = HIPDNN_DATA_FLOAT;
  std::int64_t bytes = 4;  // per element
  TileAccess access;
};

/// Where a value of a tile lives.
struct TileSlot {
  enum class In : std::uint8_t { scratch, memory, constant };
  In in = In::scratch;
  bool rows = false;  // varies along rows
  bool cols = false;
  std::int64_t offset = 0;   // scratch: bytes; constant: index
  std::int64_t bytes = 4;    // per element
  std::int64_t row_stride = 0;  // memory
  int operand = -1;             // memory
};

struct TileInstruction {
  enum class Kind : std::uint8_t { compute, move, fold, index };
  Kind kind = Kind::compute;
  TileKernel kernel = nullptr;
  bool rows = false;  // extent of the result
  bool cols = false;
  int sources = 0;
  TileSlot dst;
  std::array<TileSlot, 3> src;
  std::array<double, 3> param{};
};

/// The tile being run: current lengths of the chunked dimensions and the element offset of every operand.
struct TileState {
  std::int64_t row_units = 1;  // of rows.dims.front()
  std::int64_t col_units = 1;
  std::array<std::int64_t, max_operands> offsets;  // as many as there are operands: to clear them all takes longer than a small tile
};

/// Immutable; `run` may be called on several threads with different scratch.
class TileProgram {
 public:
  /// `uids`: order of the pointers that `run` receives. `whole_reduction`: every tile holds all elements that fold together; else the
  /// caller combines the partial results of the program's one fold.
  TileProgram(const Graph& graph, const RowProgram& program, const std::vector<std::int64_t>& uids, std::int64_t tile_elements,
              bool whole_reduction);

  const Tiling& tiling() const { return tiling_; }
  std::int64_t scratch_bytes() const { return scratch_bytes_; }
  const std::vector<TileInstruction>& instructions() const { return instructions_; }
  std::size_t operand_count() const { return operands_.size(); }
  /// The state at the first tile.
  TileState start() const;
  /// Number of tiles in loops [first, last).
  std::int64_t tile_count(std::size_t first, std::size_t last) const;
  /// Moves `state`, which is at the first tile of loops [first, last), to their tile number `tile`.
  void locate(std::int64_t tile, std::size_t first, std::size_t last, TileState& state) const;
  /// Runs instructions [first, last) on one tile.
  void run(std::size_t first, std::size_t last, const TileState& state, void* const* pointers, std::byte* scratch) const;
  void run_tile(const TileState& state, void* const* pointers, std::byte* scratch) const {
    run(0, instructions_.size(), state, pointers, scratch);
  }

  std::int64_t rows_of(const TileState& state) const { return state.row_units * row_inner_; }
  std::int64_t cols_of(const TileState& state) const { return state.col_units * col_inner_; }

 private:
  friend class TileCompiler;
  /// One end of an instruction: address and element strides within the tile.
  struct Side {
    std::byte* base;
    std::int64_t row, col, bytes;
    const TileAccess* access;  // pieces, for memory that strides alone do not describe
  };
  Side side_of(const TileSlot& slot, const TileState& state, void* const* pointers, std::byte* scratch) const;
  void run_compute(const TileInstruction& step, const TileState& state, void* const* pointers, std::byte* scratch) const;
  void run_fold(const TileInstruction& step, const TileState& state, void* const* pointers, std::byte* scratch) const;
  void run_move(const TileInstruction& step, const TileState& state, void* const* pointers, std::byte* scratch) const;

  Tiling tiling_;
  std::vector<TileOperand> operands_;
  std::vector<TileInstruction> instructions_;
  std::vector<std::array<std::byte, 8>> constants_;
  std::int64_t scratch_bytes_ = 0;
  std::int64_t row_inner_ = 1;
  std::int64_t col_inner_ = 1;
};

}  // namespace hipdnn_port
