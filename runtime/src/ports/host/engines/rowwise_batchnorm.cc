// Batch norm of training: statistics of the batch, the normalized batch, running statistics.
#include "frontend/names.h"
#include "frontend/status.h"
#include "rowwise_lowering.h"

namespace hipdnn_port {

void RowLowering::lower_running(const Node& node, hipdnnBackendAttributeName_t before, hipdnnBackendAttributeName_t after, int of_batch,
                                Reg reg) {
  if (!node.has_tensor(after)) return;
  const int old = input(node.tensor(before), reg);
  const int momentum = input(node.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_MOMENTUM_EXT), reg);
  const int step = add_step(TileOp::mul, reg, {add_step(TileOp::sub, reg, {of_batch, old}), momentum});
  define(node.tensor(after), add_step(TileOp::add, reg, {old, step}), false);
}

void RowLowering::lower_batchnorm(const Node& node) {
  if (node.has_tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_PEER_STATS_EXT)) refuse("batch norm over several devices (peer statistics)");
  const int x = node.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_X_EXT);
  const auto math = static_cast<hipdnnDataType_t>(node.integer_or(HIPDNN_ATTR_BATCHNORM_COMP_TYPE_EXT, HIPDNN_DATA_FLOAT));
  check_math(math, true, "batch norm");
  const Reg reg = math == HIPDNN_DATA_DOUBLE || tensor(x).dtype == HIPDNN_DATA_DOUBLE ? Reg::f64 : Reg::f32;
  reduce_over(axes_where_unequal(x, node.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_SCALE_EXT)));
  const double count = reduced_count();
  const int elements = add_constant(count, reg);
  const int from = input(x, reg);
  const int mean = add_step(TileOp::div, reg, {add_fold(Fold::add, Prepare::none, from), elements});
  const int centred = add_step(TileOp::sub, reg, {from, mean});
  const int squares = add_fold(Fold::add, Prepare::square, centred);
  const int variance = add_step(TileOp::div, reg, {squares, elements});
  const int epsilon = input(node.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_EPSILON_EXT), reg);
  const int inverse = add_step(TileOp::rsqrt, reg, {add_step(TileOp::add, reg, {variance, epsilon})});
  if (node.has_tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_MEAN_EXT)) define(node.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_MEAN_EXT), mean, false);
  if (node.has_tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_INV_VARIANCE_EXT)) {
    define(node.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_INV_VARIANCE_EXT), inverse, false);
  }
  lower_running(node, HIPDNN_ATTR_OPERATION_BATCHNORM_PREV_RUNNING_MEAN_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_NEXT_RUNNING_MEAN_EXT, mean, reg);
  // The running variance estimates that of all batches: divided by one element less.
  const int unbiased = count > 1 ? add_step(TileOp::div, reg, {squares, add_constant(count - 1, reg)}) : variance;
  lower_running(node, HIPDNN_ATTR_OPERATION_BATCHNORM_PREV_RUNNING_VARIANCE_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_NEXT_RUNNING_VARIANCE_EXT,
                unbiased, reg);
  define(node.tensor(HIPDNN_ATTR_OPERATION_BATCHNORM_Y_EXT),
         normalized(centred, inverse, node, HIPDNN_ATTR_OPERATION_BATCHNORM_SCALE_EXT, HIPDNN_ATTR_OPERATION_BATCHNORM_BIAS_EXT, reg), false);
}

}  // namespace hipdnn_port
