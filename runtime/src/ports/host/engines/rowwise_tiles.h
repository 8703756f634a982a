// A row program bound to a tiling: kernels, scratch offsets and operand addresses, ready to run on any tile without allocating.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kernels_tile.h"
#include "rowwise_program.h"
#include "rowwise_tiling.h"

namespace hipdnn_port {

/// As many as an elementwise kernel may have tensors and axes.
constexpr std::size_t max_operands = 1024 + max_axes;

/// Memory an instruction list reads or writes, or the index along an axis (no pointer).
struct TileOperand {
  int pointer = -1;  // position among the pointers of a run; -1 for an axis index
  DType dtype = DType::f32;
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
  std::array<bool, 3> advances{};  // compute: whether a source has an element for each of the result's columns
  std::array<double, 3> param{};
};

/// The tile being run: current lengths of the chunked dimensions and the element offset of every operand.
struct TileState {
  std::int64_t row_units = 1;  // of rows.dims.front()
  std::int64_t col_units = 1;
  std::size_t operands;
  std::array<std::int64_t, max_operands> offsets;  // of which there are `operands`: to clear or copy all takes longer than a small tile

  explicit TileState(std::size_t count) : operands(count) {}
  TileState(const TileState& other) : row_units(other.row_units), col_units(other.col_units), operands(other.operands) {
    std::copy_n(other.offsets.begin(), operands, offsets.begin());
  }
  TileState& operator=(const TileState&) = delete;
};

/// Immutable; `run` may be called on several threads with different scratch.
class TileProgram {
 public:
  /// `whole_reduction`: every tile holds all elements that fold together; else the caller combines the partial results of the program's
  /// one fold. Throws Refusal.
  TileProgram(const RowProgram& program, std::int64_t tile_elements, bool whole_reduction);

  const Tiling& tiling() const { return tiling_; }
  std::int64_t scratch_bytes() const { return scratch_bytes_; }
  const std::vector<TileInstruction>& instructions() const { return instructions_; }
  /// The state at the first tile.
  TileState start() const {
    TileState state(operands_.size());
    restart(state);
    return state;
  }
  /// Number of tiles in loops [first, last), and in all.
  std::int64_t tile_count(std::size_t first, std::size_t last) const;
  std::int64_t tile_count() const { return tile_count_; }
  /// Moves `state`, which is at the first tile of loops [first, last), to their tile number `tile`.
  void locate(std::int64_t tile, std::size_t first, std::size_t last, TileState& state) const;
  /// Runs instructions [first, last) on one tile.
  void run(std::size_t first, std::size_t last, const TileState& state, void* const* pointers, std::byte* scratch) const;
  void run_tile(const TileState& state, void* const* pointers, std::byte* scratch) const {
    run(0, instructions_.size(), state, pointers, scratch);
  }
  /// Runs tiles [first, last); what is the same in all of them is computed once.
  void run_tiles(std::int64_t first, std::int64_t last, void* const* pointers, std::byte* scratch) const;

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
  void restart(TileState& state) const;
  Side side_of(const TileSlot& slot, const TileState& state, void* const* pointers, std::byte* scratch) const;
  void run_compute(const TileInstruction& step, const TileState& state, void* const* pointers, std::byte* scratch) const;
  void run_fold(const TileInstruction& step, const TileState& state, void* const* pointers, std::byte* scratch) const;
  void run_move(const TileInstruction& step, const TileState& state, void* const* pointers, std::byte* scratch) const;

  Tiling tiling_;
  std::vector<TileOperand> operands_;
  std::vector<TileInstruction> instructions_;
  std::size_t once_ = 0;  // of the instructions, the first ones are the same for every tile
  std::vector<std::uint64_t> constants_;
  std::int64_t tile_count_ = 1;
  std::int64_t scratch_bytes_ = 0;
  std::int64_t row_inner_ = 1;
  std::int64_t col_inner_ = 1;
};

}  // namespace hipdnn_port
