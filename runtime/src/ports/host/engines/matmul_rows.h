// Rows of a matmul's operands as float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "frontend/graph.h"
#include "kernels_tile.h"

namespace hipdnn_port {

/// float32, float16 or bfloat16: what rows can be read from and written to.
bool is_float_type(hipdnnDataType_t type);

/// Rows of a tensor whose last dim is along columns, the other dims in the order of `dims`. Immutable.
class Rows {
 public:
  Rows(const Tensor& tensor, const std::vector<std::int64_t>& dims);

  /// to[c] = row[first + c], as float32.
  void load(const void* base, std::int64_t row, std::int64_t first, std::int64_t count, float* to) const;
  void store(void* base, std::int64_t row, std::int64_t first, std::int64_t count, const float* from) const;
  /// Where row[first] lies, if the row is one of adjacent float32; else null.
  void* in_place(void* base, std::int64_t row, std::int64_t first) const;
  /// Elements from each row to the next where all are in place and equally far apart.
  std::optional<std::int64_t> step() const;

 private:
  std::int64_t offset(std::int64_t row, std::int64_t column) const;

  hipdnnDataType_t dtype_;
  std::vector<std::int64_t> dims_;
  std::vector<std::int64_t> strides_;
  TileKernel convert_to_ = nullptr, convert_from_ = nullptr;
};

/// Rows and the pointer that they are behind, an index in Plan::uids().
struct OperandRows {
  Rows rows;
  std::size_t pointer;
};

/// Index of a tensor's pointer.
std::size_t pointer_of(const Graph& graph, int tensor, const std::vector<std::int64_t>& uids);

}  // namespace hipdnn_port
