// Pointwise operations and reductions as a list of typed steps over one iteration space: what the tile planner works on. Graphs of hipDNN
// and elementwise kernels become such programs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "frontend/graph.h"
#include "kernels_tile.h"

namespace hipdnn_port {

/// The graph is not one these engines take; the message says which node and why.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Why `read` refuses the graph that it reads; nothing where it does not.
template <class Read>
std::optional<std::string> refusal_of(const Read& read) {
  try {
    read();
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
  return std::nullopt;
}

/// A set of axes of the iteration space, bit i for axis i.
using AxisSet = std::uint32_t;
constexpr std::size_t max_axes = 32;

/// Memory that a program reads or writes.
struct RowTensor {
  DType dtype = DType::f32;
  int pointer = -1;                   // position among the pointers of a run; -1 for what has no memory
  std::int64_t elements = 0;
  std::vector<std::int64_t> strides;  // in elements, by axis; 0 where it does not vary
};

/// One intermediate or operand. It has one element per point of the axes it varies along and is broadcast along the others.
struct RowValue {
  enum class Source : std::uint8_t { memory, constant, axis_index, step };
  Source source;
  Reg reg;
  AxisSet axes = 0;
  int tensor = -1;         // memory: index into RowProgram::tensors
  int axis = -1;           // axis_index
  std::uint64_t bits = 0;  // constant, as its register holds it
};

/// One computation. A fold reduces argument 0 over RowProgram::reduced.
struct RowStep {
  bool is_fold = false;
  TileOp op = TileOp::copy;
  Fold fold = Fold::add;
  Prepare prepare = Prepare::none;
  std::vector<int> args;  // indices into RowProgram::values
  int result = -1;
  std::array<double, 3> param{};
};

/// `value` is written to the tensor, which has elements along `axes`.
struct RowOutput {
  int value;
  int tensor;
  AxisSet axes = 0;
};

struct RowProgram {
  std::vector<std::int64_t> extents;
  AxisSet reduced = 0;
  std::vector<RowTensor> tensors;
  std::vector<RowValue> values;
  std::vector<RowStep> steps;
  std::vector<RowOutput> outputs;
  /// Any output may lie in the memory of an input with the same strides; else only a program's one output may.
  bool may_overlap = false;

  int add(RowValue value);
  /// Appends a step; its result varies along the axes of its arguments.
  int add(TileOp op, Reg result, std::vector<int> args, std::array<double, 3> param = {});

  /// True where a fold's result, or something computed from it, is spread along a reduced axis again or folded again.
  bool broadcasts_back() const;
  int fold_count() const;
  /// Elements of the iteration space.
  std::int64_t size() const;
};

/// Lowers pointwise, reduction, layer norm and RMS norm nodes. Throws Refusal.
RowProgram lower_rowwise(const Graph& graph);

/// Which values depend on a fold's result.
std::vector<bool> after_fold(const RowProgram& program);

/// Makes one step of those that round half to even.
void find_rounding(RowProgram& program);

/// Makes one step each of those between bytes and the floats that they stand for: scale and zero point.
void find_bytes(RowProgram& program);

/// Drops steps whose results nobody reads.
void remove_unused(RowProgram& program);

/// Moves the steps that no fold's result enters to the front.
void order_before_folds(RowProgram& program);

/// Joins steps that one kernel does at once: exp(a - b), a * b + c, division by a per-row value.
void fuse_steps(RowProgram& program);

/// "node 3 (softmax_max)": how refusals name a node.
std::string node_label(const Graph& graph, std::size_t node);

}  // namespace hipdnn_port
