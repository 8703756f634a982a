// A matmul whose right operand is one matrix, with an epilogue: what more than one engine reads out of a graph.
#pragma once

#include "frontend/graph.h"
#include "matmul_epilogue.h"

namespace hipdnn_port {

/// Tensors are indices in Graph::tensors.
struct OneMatrixMatmul {
  int a = -1, b = -1;
  MatmulEpilogue epilogue;
};

/// Throws a Refusal with the reason where the graph is another.
OneMatrixMatmul read_one_matrix_matmul(const Graph& graph);

}  // namespace hipdnn_port
