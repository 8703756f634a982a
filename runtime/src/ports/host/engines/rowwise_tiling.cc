// Loop order, joining of dimensions and choice of tile shapes.
#include "rowwise_tiling.h"

#include <algorithm>
#include <cstdlib>

namespace hipdnn_port {
namespace {

constexpr std::int64_t whole_axis = std::int64_t{1} << 40;  // more elements than any tile axis has
constexpr std::int64_t lane_multiple = 64;  // columns of a tile whose rows are folded: a multiple of four vectors

/// True where `a` belongs outside `b`: the first operand that moves along both and tells them apart decides.
bool is_outside(const LoopDim& a, const LoopDim& b) {
  for (std::size_t i = 0; i < a.strides.size(); ++i) {
    const std::int64_t x = std::abs(a.strides[i]);
    const std::int64_t y = std::abs(b.strides[i]);
    if (x != 0 && y != 0 && x != y) return x > y;
  }
  return false;
}

/// Dimensions longer than 1, outermost first. Insertion sort, because `is_outside` need not be transitive.
std::vector<LoopDim> ordered_dims(const TilingRequest& request) {
  std::vector<LoopDim> dims;
  for (std::size_t axis = 0; axis < request.extents.size(); ++axis) {
    if (request.extents[axis] == 1) continue;
    LoopDim dim{request.extents[axis], (request.reduced >> axis & 1) != 0, AxisSet{1} << axis, {}};
    for (const AxisStrides& strides : request.operands) dim.strides.push_back(strides[axis]);
    auto at = dims.end();
    while (at != dims.begin() && is_outside(dim, *(at - 1))) --at;
    dims.insert(at, std::move(dim));
  }
  return dims;
}

bool joins(const LoopDim& outer, const LoopDim& inner) {
  for (std::size_t i = 0; i < outer.strides.size(); ++i) {
    if (outer.strides[i] != inner.strides[i] * inner.extent) return false;
  }
  return true;
}

/// The dimensions of one kind, neighbours joined where all operands step evenly across both.
std::vector<LoopDim> joined_dims(const std::vector<LoopDim>& dims, bool reduced) {
  std::vector<LoopDim> joined;
  for (const LoopDim& dim : dims) {
    if (dim.reduced != reduced) continue;
    if (!joined.empty() && joins(joined.back(), dim)) {
      LoopDim& last = joined.back();
      last.extent *= dim.extent;
      last.axes |= dim.axes;
      last.strides = dim.strides;
    } else {
      joined.push_back(dim);
    }
  }
  return joined;
}

/// Moves dimensions from the inner end of `from` into a tile axis until it has `wanted` elements, at most `limit` dimensions.
TileAxis take_axis(std::vector<LoopDim>& from, std::int64_t wanted, std::size_t limit) {
  TileAxis axis;
  std::int64_t elements = 1;
  while (!from.empty() && axis.dims.size() < limit && (elements < wanted || axis.dims.empty())) {
    axis.chunk = std::clamp<std::int64_t>((wanted + elements - 1) / elements, 1, from.back().extent);
    elements *= from.back().extent;
    axis.dims.insert(axis.dims.begin(), std::move(from.back()));
    from.pop_back();
  }
  return axis;
}

/// True where reductions should run along rows: the innermost memory dimension of the deciding operand is a kept one.
bool lanes_are_kept(const std::vector<LoopDim>& kept, const std::vector<LoopDim>& reduced, std::size_t operand_count) {
  if (kept.empty() || reduced.empty()) return false;
  for (std::size_t i = 0; i < operand_count; ++i) {
    const std::int64_t k = std::abs(kept.back().strides[i]);
    const std::int64_t r = std::abs(reduced.back().strides[i]);
    if (k != 0 && r != 0) return k < r;
  }
  return false;
}

std::int64_t rounded_up(std::int64_t x, std::int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

void add_loop(Tiling& tiling, TileLoop::Of of, const LoopDim& dim, std::int64_t chunk) {
  tiling.loops.push_back({of, dim.reduced, dim.extent, chunk, dim.strides});
}

void add_chunk_loop(Tiling& tiling, TileLoop::Of of, const TileAxis& axis) {
  if (!axis.dims.empty() && axis.chunk < axis.dims.front().extent) add_loop(tiling, of, axis.dims.front(), axis.chunk);
}

TileAxis take_reduced(const TilingRequest& request, std::vector<LoopDim>& reduced, std::int64_t wanted) {
  return request.whole_reduction ? take_axis(reduced, whole_axis, reduced.size()) : take_axis(reduced, wanted, 1);
}

}  // namespace

AxisSet TileAxis::axes() const {
  AxisSet all = 0;
  for (const LoopDim& dim : dims) all |= dim.axes;
  return all;
}

std::int64_t TileAxis::inner() const {
  std::int64_t product = 1;
  for (std::size_t i = 1; i < dims.size(); ++i) product *= dims[i].extent;
  return product;
}

Tiling make_tiling(const TilingRequest& request) {
  const std::vector<LoopDim> dims = ordered_dims(request);
  std::vector<LoopDim> kept = joined_dims(dims, false);
  std::vector<LoopDim> reduced = joined_dims(dims, true);
  const std::int64_t wanted = request.elements;
  Tiling tiling;
  if (!request.has_folds) {
    tiling.cols = take_axis(kept, wanted, 1);
    tiling.rows = take_axis(kept, std::max<std::int64_t>(1, wanted / tiling.cols.most()), max_axes);
  } else if (lanes_are_kept(kept, reduced, request.operands.size())) {
    tiling.folds_rows = true;
    tiling.rows = take_reduced(request, reduced, wanted / lane_multiple);
    tiling.cols = take_axis(kept, rounded_up(std::max<std::int64_t>(1, wanted / tiling.rows.most()), lane_multiple), 1);
  } else {
    tiling.cols = take_reduced(request, reduced, wanted);
    tiling.rows = take_axis(kept, std::max<std::int64_t>(1, wanted / tiling.cols.most()), max_axes);
  }
  for (const LoopDim& dim : kept) add_loop(tiling, TileLoop::Of::dim, dim, 1);
  TileAxis& folded = tiling.folds_rows ? tiling.rows : tiling.cols;
  TileAxis& other = tiling.folds_rows ? tiling.cols : tiling.rows;
  add_chunk_loop(tiling, tiling.folds_rows ? TileLoop::Of::cols : TileLoop::Of::rows, other);
  for (const LoopDim& dim : reduced) add_loop(tiling, TileLoop::Of::dim, dim, 1);
  add_chunk_loop(tiling, tiling.folds_rows ? TileLoop::Of::rows : TileLoop::Of::cols, folded);
  return tiling;
}

namespace {

/// Offsets of the runs along a tile axis, for a whole chunk.
std::vector<std::int64_t> piece_offsets(const TileAxis& axis, std::size_t operand) {
  std::vector<std::int64_t> offsets{0};
  for (std::size_t d = 0; d + 1 < axis.dims.size(); ++d) {
    const std::int64_t extent = d == 0 ? axis.chunk : axis.dims[d].extent;
    std::vector<std::int64_t> next;
    for (std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < extent; ++i) next.push_back(offset + i * axis.dims[d].strides[operand]);
    }
    offsets = std::move(next);
  }
  return offsets;
}

bool moves_along(const TileAxis& axis, std::size_t operand) {
  return std::any_of(axis.dims.begin(), axis.dims.end(), [&](const LoopDim& dim) { return dim.strides[operand] != 0; });
}

/// Whether each piece of `run` elements begins where the one before it ends. A hostile stride may reach beyond what a number holds.
bool follows(const std::vector<std::int64_t>& pieces, std::int64_t stride, std::int64_t run) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::int64_t expected = 0;
    if (__builtin_mul_overflow(static_cast<std::int64_t>(i) * run, stride, &expected) || pieces[i] != expected) return false;
  }
  return true;
}

}  // namespace

TileAccess access_of(const Tiling& tiling, std::size_t operand) {
  TileAccess access;
  access.rows = moves_along(tiling.rows, operand);
  access.cols = moves_along(tiling.cols, operand);
  if (access.rows) access.row_stride = tiling.rows.dims.back().strides[operand];
  if (access.cols) access.col_stride = tiling.cols.dims.back().strides[operand];
  access.row_pieces = piece_offsets(tiling.rows, operand);
  access.col_pieces = piece_offsets(tiling.cols, operand);
  access.is_uniform = follows(access.row_pieces, access.row_stride, tiling.rows.run()) &&
                      follows(access.col_pieces, access.col_stride, tiling.cols.run());
  return access;
}

}  // namespace hipdnn_port
