// What HOST_PANEL_MATMUL_ENGINE reads out of a graph.
#pragma once

#include "frontend/graph.h"
#include "matmul_epilogue.h"

namespace hipdnn_port {

/// Tensors are indices in Graph::tensors.
struct PanelMatmul {
  int a = -1, b = -1;
  MatmulEpilogue epilogue;
};

/// Throws a Refusal with the reason where the engine does not take the graph.
PanelMatmul read_panel_matmul(const Graph& graph);

}  // namespace hipdnn_port
