#include "one_matrix_matmul.h"

#include <algorithm>
#include <vector>

#include "frontend/engine.h"
#include "frontend/status.h"
#include "matmul_rows.h"
#include "rowwise_program.h"

namespace hipdnn_port {

OneMatrixMatmul read_one_matrix_matmul(const Graph& graph) {
  if (graph.nodes.empty() || graph.nodes[0].type != HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) throw Refusal("the first node is no matmul");
  const Node& node = graph.nodes[0];
  OneMatrixMatmul found{.a = node.tensor(HIPDNN_ATTR_OPERATION_MATMUL_ADESC), .b = node.tensor(HIPDNN_ATTR_OPERATION_MATMUL_BDESC), .epilogue = {}};
  const Tensor& a = graph.tensor(found.a);
  const Tensor& b = graph.tensor(found.b);
  if (!is_float_type(a.dtype)) throw Refusal(text("the left operand is ", describe(a)));
  for (const Tensor* operand : {&a, &b}) {
    if (!operand->has_pointer() || operand->dims.size() < 2) throw Refusal(text(describe(*operand), " is no matrix in memory"));
    if (operand->element_count() == 0) throw Refusal(text(describe(*operand), " has no elements"));
  }
  if (std::any_of(b.dims.begin(), b.dims.end() - 2, [](std::int64_t size) { return size != 1; })) throw Refusal("has batches of weights");
  found.epilogue = read_matmul_epilogue(graph, 0);
  return found;
}

}  // namespace hipdnn_port
