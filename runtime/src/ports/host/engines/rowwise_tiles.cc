// Runs tile programs.
#include "rowwise_tiles.h"

namespace hipdnn_port {

void TileProgram::restart(TileState& state) const {
  state.row_units = tiling_.rows.dims.empty() ? 1 : tiling_.rows.chunk;
  state.col_units = tiling_.cols.dims.empty() ? 1 : tiling_.cols.chunk;
  std::fill_n(state.offsets.begin(), operands_.size(), std::int64_t{0});
}

std::int64_t TileProgram::tile_count(std::size_t first, std::size_t last) const {
  std::int64_t count = 1;
  for (std::size_t i = first; i < last; ++i) count *= tiling_.loops[i].count();
  return count;
}

void TileProgram::locate(std::int64_t tile, std::size_t first, std::size_t last, TileState& state) const {
  for (std::size_t i = last; i-- > first;) {
    const TileLoop& loop = tiling_.loops[i];
    const std::int64_t count = loop.count();
    const std::int64_t position = tile % count * loop.chunk;
    tile /= count;
    const std::int64_t units = std::min(loop.chunk, loop.extent - position);
    if (loop.of == TileLoop::Of::rows) state.row_units = units;
    if (loop.of == TileLoop::Of::cols) state.col_units = units;
    for (std::size_t o = 0; o < operands_.size(); ++o) state.offsets[o] += position * loop.strides[o];
  }
}

TileProgram::Side TileProgram::side_of(const TileSlot& slot, const TileState& state, void* const* pointers, std::byte* scratch) const {
  if (slot.in == TileSlot::In::memory) {
    const auto index = static_cast<std::size_t>(slot.operand);
    const TileOperand& operand = operands_[index];
    std::byte* base = operand.pointer < 0 ? nullptr : static_cast<std::byte*>(pointers[operand.pointer]) + state.offsets[index] * operand.bytes;
    return {base, operand.access.row_stride, operand.access.col_stride, operand.bytes, operand.access.is_uniform ? nullptr : &operand.access};
  }
  if (slot.in == TileSlot::In::constant) {
    // Constants are only read; the shared description of both ends has no const.
    auto* base = const_cast<std::uint64_t*>(&constants_[static_cast<std::size_t>(slot.offset)]);
    return {reinterpret_cast<std::byte*>(base), 0, 0, slot.bytes, nullptr};
  }
  const std::int64_t row = !slot.rows ? 0 : slot.cols ? cols_of(state) : 1;
  return {scratch + slot.offset, row, slot.cols ? 1 : 0, slot.bytes, nullptr};
}

void TileProgram::run_compute(const TileInstruction& step, const TileState& state, void* const* pointers, std::byte* scratch) const {
  TileArgs args;
  args.param = step.param.data();
  // A result that varies along rows only is one run of that length.
  const bool as_row = step.rows && !step.cols;
  args.rows = step.rows && step.cols ? rows_of(state) : 1;
  args.cols = step.cols ? cols_of(state) : step.rows ? rows_of(state) : 1;
  const Side dst = side_of(step.dst, state, pointers, scratch);
  args.dst = dst.base;
  args.dst_row = as_row ? 0 : dst.row;
  for (std::size_t i = 0; i < static_cast<std::size_t>(step.sources); ++i) {
    const Side src = side_of(step.src[i], state, pointers, scratch);
    args.src[i] = src.base;
    args.src_row[i] = as_row ? 0 : src.row;
    args.src_col[i] = step.advances[i] ? 1 : 0;
  }
  step.kernel(args);
}

void TileProgram::run_fold(const TileInstruction& step, const TileState& state, void* const* pointers, std::byte* scratch) const {
  TileArgs args;
  const Side src = side_of(step.src[0], state, pointers, scratch);
  const Side dst = side_of(step.dst, state, pointers, scratch);
  args.rows = tiling_.folds_rows || step.rows ? rows_of(state) : 1;
  args.cols = !tiling_.folds_rows || step.cols ? cols_of(state) : 1;
  args.src[0] = src.base;
  args.src_row[0] = src.row;
  args.dst = dst.base;
  args.dst_row = dst.row;
  step.kernel(args);
}

void TileProgram::run_move(const TileInstruction& step, const TileState& state, void* const* pointers, std::byte* scratch) const {
  const bool is_index = step.kind == TileInstruction::Kind::index;
  const std::int64_t source_offset = is_index ? state.offsets[static_cast<std::size_t>(step.src[0].operand)] : 0;
  const Side dst = side_of(step.dst, state, pointers, scratch);
  const Side src = side_of(step.src[0], state, pointers, scratch);
  // Columns are the inner loop of a kernel; a value that varies along rows only runs as columns.
  const bool turned = step.rows && !step.cols;
  const auto move = [&](std::int64_t from, std::int64_t to, std::int64_t rows, std::int64_t cols) {
    const double first = static_cast<double>(source_offset + from);
    TileArgs args;
    args.rows = turned ? 1 : rows;
    args.cols = turned ? rows : cols;
    args.dst = dst.base + to * dst.bytes;
    args.dst_row = turned ? 0 : dst.row;
    args.dst_col = turned ? dst.row : dst.col;
    args.src[0] = is_index ? nullptr : src.base + from * src.bytes;
    args.src_row[0] = turned ? 0 : src.row;
    args.src_col[0] = turned ? src.row : src.col;
    args.param = is_index ? &first : nullptr;
    step.kernel(args);
  };
  const std::int64_t rows = step.rows ? rows_of(state) : 1;
  const std::int64_t cols = step.cols ? cols_of(state) : 1;
  // Without pieces on either side one call does the tile; else one per pair of runs.
  if (dst.access == nullptr && src.access == nullptr) return move(0, 0, rows, cols);
  const std::int64_t row_run = step.rows && tiling_.rows.dims.size() > 1 ? tiling_.rows.run() : rows;
  const std::int64_t col_run = step.cols && tiling_.cols.dims.size() > 1 ? tiling_.cols.run() : cols;
  const auto offset = [](const Side& side, std::int64_t row, std::int64_t row_piece, std::int64_t col, std::int64_t col_piece) {
    if (side.access == nullptr) return row * side.row + col * side.col;
    return side.access->row_pieces[static_cast<std::size_t>(row_piece)] + side.access->col_pieces[static_cast<std::size_t>(col_piece)];
  };
  for (std::int64_t r = 0, row_piece = 0; r < rows; r += row_run, ++row_piece) {
    for (std::int64_t c = 0, col_piece = 0; c < cols; c += col_run, ++col_piece) {
      move(offset(src, r, row_piece, c, col_piece), offset(dst, r, row_piece, c, col_piece), row_run, col_run);
    }
  }
}

void TileProgram::run(std::size_t first, std::size_t last, const TileState& state, void* const* pointers, std::byte* scratch) const {
  for (std::size_t i = first; i < last; ++i) {
    const TileInstruction& step = instructions_[i];
    switch (step.kind) {
      case TileInstruction::Kind::compute: run_compute(step, state, pointers, scratch); break;
      case TileInstruction::Kind::fold: run_fold(step, state, pointers, scratch); break;
      case TileInstruction::Kind::move:
      case TileInstruction::Kind::index: run_move(step, state, pointers, scratch); break;
    }
  }
}

void TileProgram::run_tiles(std::int64_t first, std::int64_t last, void* const* pointers, std::byte* scratch) const {
  TileState state = start();
  run(0, once_, state, pointers, scratch);
  for (std::int64_t tile = first; tile < last; ++tile) {
    if (tile > first) restart(state);
    locate(tile, 0, tiling_.loops.size(), state);
    run(once_, instructions_.size(), state, pointers, scratch);
  }
}

}  // namespace hipdnn_port
