// The pointwise modes as tile kernels compute them, and builder state while a graph becomes a RowProgram.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "hipdnn_backend.h"
#include "rowwise_program.h"

namespace hipdnn_port {

/// Which register types a mode is computed in.
enum class ModeClass : std::uint8_t {
  arithmetic,  // integer operands stay integers
  real,        // floating point whatever the operands are
  compare,     // boolean result, operands in their own type
  logical,     // boolean operands and result
  select,      // binary select
  identity,    // conversion only
  index,       // position along an axis
};

struct PointwiseMode {
  hipdnnPointwiseMode_t mode;
  const char* name;
  int operands;
  ModeClass kind;
  TileOp op;
};

/// The row of a forward mode, nullptr for a backward or unknown one.
const PointwiseMode* find_pointwise_mode(hipdnnPointwiseMode_t mode);

bool is_whole(hipdnnDataType_t type);
bool is_real(hipdnnDataType_t type);

/// Walks the nodes once. Every method throws Refusal where the graph is not one the engine takes.
class RowLowering {
 public:
  explicit RowLowering(const Graph& graph) : graph_(graph), value_of_(graph.tensors.size(), -1) {}
  RowProgram run();

 private:
  void find_extents();
  void add_tensors();
  void add_sources();
  void lower_node(const Node& node);
  void add_outputs();

  void lower_pointwise(const Node& node);
  void lower_index(const Node& node);
  void lower_identity(const Node& node, const PointwiseMode& mode);
  void lower_reduction(const Node& node);
  void lower_layernorm(const Node& node);
  void lower_rmsnorm(const Node& node);
  void lower_batchnorm(const Node& node);
  /// Running statistics moved towards those of the batch.
  void lower_running(const Node& node, hipdnnBackendAttributeName_t before, hipdnnBackendAttributeName_t after, int of_batch, Reg reg);

  /// Register type a pointwise node is computed in.
  Reg compute_reg(const Node& node, const PointwiseMode& mode, std::span<const int> inputs, int output) const;
  /// Refuses integer arithmetic asked of an operation that has none, and types that are no compute types.
  void check_math(hipdnnDataType_t math, bool needs_real, const char* what) const;
  std::array<double, 3> mode_parameters(const Node& node, TileOp op) const;

  int add_step(TileOp op, Reg result, std::vector<int> args, std::array<double, 3> param = {}) {
    return program_.add(op, result, std::move(args), param);
  }
  int add_fold(Fold fold, Prepare prepare, int arg);
  int add_constant(double value, Reg reg);
  /// `value` in register type `reg`: loaded so where it comes from memory, else converted.
  int as_reg(int value, Reg reg, hipdnnDataType_t saturate_to = HIPDNN_DATA_INT64);
  int as_mask(int value);
  /// Value of an input tensor in register type `reg`.
  int input(int tensor, Reg reg);
  /// Makes `value` what readers of `tensor` and its memory see.
  void define(int tensor, int value, bool rounds);
  /// Sets the reduced axes, or checks that they are those of the earlier reductions.
  void reduce_over(AxisSet axes);
  AxisSet axes_where_unequal(int x, int y) const;
  /// Elements a fold takes together.
  double reduced_count() const;
  /// A normalization's axes: the last `count`.
  AxisSet trailing(std::int64_t count) const;
  /// Shared part of the norms: epsilon, scale, bias, optional statistics outputs.
  int normalized(int centred, int inverse, const Node& node, hipdnnBackendAttributeName_t scale, hipdnnBackendAttributeName_t bias,
                 Reg reg);

  const Tensor& tensor(int index) const { return graph_.tensor(index); }
  RowValue& value(int index) { return program_.values[static_cast<std::size_t>(index)]; }
  AxisSet tensor_axes(const Tensor& t) const;
  /// Dimensions are aligned at the last one where ranks differ.
  std::size_t axis_of(const Tensor& t, std::size_t dim) const;
  [[noreturn]] void refuse(const std::string& reason) const;

  const Graph& graph_;
  RowProgram program_;
  std::vector<int> value_of_;  // by tensor; -1 while unknown
  std::size_t node_ = 0;       // being lowered, for messages
};

}  // namespace hipdnn_port
