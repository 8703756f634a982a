// A hipDNN graph as one matmul with an epilogue, in the terms of BLAS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/graph.h"

namespace hipdnn_cuda {

/// A matrix in column-major order, as it lies in memory.
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;
  std::int64_t batch_stride = 0;
  /// Whether the matmul takes it transposed.
  bool is_transposed = false;
  /// Pointers to it are multiples of this.
  std::int64_t alignment = 0;
};

enum class Activation { none, relu, gelu_tanh };

/// `result = activation(scale * (left x right) + addend + bias)`. A matmul of row-major matrices is one of their column-major transposes in the other order:
/// `left` is the graph's B. Numbers of operands are positions among `uids`.
struct Matmul {
  /// Of the result and of what is added.
  hipdnnDataType_t dtype = HIPDNN_DATA_FLOAT;
  /// The same type, or floats of 8 bits.
  hipdnnDataType_t left_dtype = HIPDNN_DATA_FLOAT, right_dtype = HIPDNN_DATA_FLOAT;
  float scale = 1;
  std::int64_t batch = 1;
  Matrix left, right, result;
  std::optional<Matrix> addend;
  Activation activation = Activation::none;
  /// Tensors with a pointer, in the order of the graph.
  std::vector<std::int64_t> uids;
  std::size_t left_operand = 0, right_operand = 0, result_operand = 0;
  std::optional<std::size_t> addend_operand, bias_operand;
};

/// The graph as a matmul; nothing where it is something else, and then `reason` says what.
std::optional<Matmul> as_matmul(const hipdnn_port::Graph& graph, std::string& reason);

}  // namespace hipdnn_cuda
