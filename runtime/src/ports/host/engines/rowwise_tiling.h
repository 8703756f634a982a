// How an iteration space is cut into tiles of rows and columns: dimensions ordered by memory, joined where every operand allows.
#pragma once

#include <cstdint>
#include <vector>

#include "rowwise_program.h"

namespace hipdnn_port {

/// Strides, in elements, of one operand along the axes of the iteration space; 0 where it does not vary.
using AxisStrides = std::vector<std::int64_t>;

/// One or several joined axes.
struct LoopDim {
  std::int64_t extent = 1;
  bool reduced = false;
  AxisSet axes = 0;
  std::vector<std::int64_t> strides;  // by operand
};

/// The rows or the columns of a tile: nested dimensions, innermost last, of which the outermost is cut into chunks.
struct TileAxis {
  std::vector<LoopDim> dims;
  std::int64_t chunk = 1;  // of dims.front()

  AxisSet axes() const;
  /// Elements per unit of the outermost dimension.
  std::int64_t inner() const;
  /// Length of the run that strides describe: the innermost dimension, or its chunk if it is the only one.
  std::int64_t run() const { return dims.empty() ? 1 : dims.size() == 1 ? chunk : dims.back().extent; }
  std::int64_t most() const { return dims.empty() ? 1 : chunk * inner(); }
};

/// One level of the loop over tiles.
struct TileLoop {
  enum class Of : std::uint8_t { dim, rows, cols };
  Of of = Of::dim;
  bool reduced = false;
  std::int64_t extent = 1;
  std::int64_t chunk = 1;
  std::vector<std::int64_t> strides;  // by operand, per element of extent

  std::int64_t count() const { return (extent + chunk - 1) / chunk; }
};

struct Tiling {
  std::vector<TileLoop> loops;  // outermost first
  TileAxis rows;
  TileAxis cols;
  bool folds_rows = false;  // reductions run along rows (columns are lanes), else along columns
};

/// What the planner asks of the tiling.
struct TilingRequest {
  std::vector<std::int64_t> extents;
  AxisSet reduced = 0;
  bool has_folds = false;
  bool whole_reduction = true;            // a tile holds every element that is folded together
  std::int64_t elements = 2048;           // wanted per tile
  std::vector<AxisStrides> operands;      // in order of influence on the loop order
};

Tiling make_tiling(const TilingRequest& request);

/// How one operand is addressed inside a tile.
struct TileAccess {
  bool rows = false;  // varies along rows
  bool cols = false;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 0;
  std::vector<std::int64_t> row_pieces;  // offsets of the runs that make up the rows
  std::vector<std::int64_t> col_pieces;
  bool is_uniform = true;  // the strides alone describe the tile: every piece follows the one before it
};

TileAccess access_of(const Tiling& tiling, std::size_t operand);

}  // namespace hipdnn_port
