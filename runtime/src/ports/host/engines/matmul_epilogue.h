// The epilogue of a matmul on parts of rows of float32.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "frontend/graph.h"
#include "kernels_tile.h"
#include "matmul_rows.h"

namespace hipdnn_port {

/// One step on a part of a row.
struct TileStep {
  TileKernel kernel = nullptr;
  std::array<double, 3> parameters{};
  std::array<float, 2> scalars{};  ///< what a kernel of three operands reads after the value
  int operand = -1;                ///< index in Graph::tensors of what is combined with, or -1
};

struct MatmulEpilogue {
  std::vector<TileStep> steps;
  int result = -1;  ///< index in Graph::tensors
};

/// The nodes after the graph's node number `matmul`. Throws a Refusal with the reason where there is no such epilogue.
MatmulEpilogue read_matmul_epilogue(const Graph& graph, std::size_t matmul);
/// The same behind any node whose result is tensor `value`, with columns along its last dim.
MatmulEpilogue read_row_epilogue(const Graph& graph, std::size_t node, int value);

/// Where the sums of a matmul go. Immutable.
class MatmulResult {
 public:
  /// Columns that `finish` takes at once.
  static constexpr std::int64_t kMostColumns = 256;

  MatmulResult(const Graph& graph, const MatmulEpilogue& epilogue, const std::vector<std::int64_t>& uids);

  bool has_steps() const { return !steps_.empty(); }
  /// The epilogue of a part of some rows, and the store. `values`, of which rows are `values_row` apart, are overwritten.
  void finish(void* const* pointers, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count, float* values,
              std::int64_t values_row) const;

 private:
  void finish_part(void* const* pointers, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t count, float* values,
                   std::int64_t values_row) const;

  std::vector<TileStep> steps_;
  std::vector<OperandRows> tensors_;  ///< the result, then the steps' operands in their order
  bool are_in_place_ = true;          ///< all rows of all tensors, equally far apart
};

}  // namespace hipdnn_port
