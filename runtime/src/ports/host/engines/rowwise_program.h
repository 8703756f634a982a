// A graph of pointwise nodes and reductions as a list of typed steps over one iteration space: what the tile planner works on.
#pragma once

#include <array>
#include <cstdint>
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

/// A set of axes of the iteration space, bit i for axis i.
using AxisSet = std::uint32_t;
constexpr std::size_t max_axes = 16;

/// One intermediate or operand. It has one element per point of the axes it varies along and is broadcast along the others.
struct RowValue {
  enum class Source : std::uint8_t { memory, constant, axis_index, step };
  Source source;
  Reg reg;
  AxisSet axes = 0;
  int tensor = -1;        // memory: index into Graph::tensors
  int axis = -1;          // axis_index
  double constant = 0;    // constant in f32 or f64
  std::int64_t whole = 0; // constant in i64
};

/// One computation. A fold reduces argument 0 over Program::reduced.
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
  std::vector<RowValue> values;
  std::vector<RowStep> steps;
  std::vector<RowOutput> outputs;

  /// True where a fold's result, or something computed from it, is spread along a reduced axis again or folded again.
  bool broadcasts_back() const;
  int fold_count() const;
  /// Elements of the iteration space.
  std::int64_t size() const;
};

/// Lowers pointwise, reduction, layer norm and RMS norm nodes. Throws Refusal.
RowProgram lower_rowwise(const Graph& graph);

/// Moves the steps that no fold's result enters to the front.
void order_before_folds(RowProgram& program);

/// Joins steps that one kernel does at once: exp(a - b), a * b + c, division by a per-row value.
void fuse_steps(RowProgram& program);

/// "node 3 (softmax_max)": how refusals name a node.
std::string node_label(const Graph& graph, std::size_t node);

}  // namespace hipdnn_port
