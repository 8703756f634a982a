// Shape checks of pointwise operations, reductions and matrix products.
#include <array>
#include <cstdint>

#include "names.h"
#include "operation_descriptor.h"
#include "status.h"
#include "validate.h"

namespace hipdnn_port {
namespace {

/// Number of inputs a mode reads: dy and x for a gradient, the condition and two choices for a select.
int arity(std::int64_t mode) {
  switch (mode) {
    case HIPDNN_POINTWISE_BINARY_SELECT: return 3;
    case HIPDNN_POINTWISE_ADD:
    case HIPDNN_POINTWISE_ADD_SQUARE:
    case HIPDNN_POINTWISE_CMP_EQ:
    case HIPDNN_POINTWISE_CMP_GE:
    case HIPDNN_POINTWISE_CMP_GT:
    case HIPDNN_POINTWISE_CMP_LE:
    case HIPDNN_POINTWISE_CMP_LT:
    case HIPDNN_POINTWISE_CMP_NEQ:
    case HIPDNN_POINTWISE_DIV:
    case HIPDNN_POINTWISE_ELU_BWD:
    case HIPDNN_POINTWISE_GELU_APPROX_TANH_BWD:
    case HIPDNN_POINTWISE_GELU_BWD:
    case HIPDNN_POINTWISE_LOGICAL_AND:
    case HIPDNN_POINTWISE_LOGICAL_OR:
    case HIPDNN_POINTWISE_MAX:
    case HIPDNN_POINTWISE_MIN:
    case HIPDNN_POINTWISE_MUL:
    case HIPDNN_POINTWISE_RELU_BWD:
    case HIPDNN_POINTWISE_SIGMOID_BWD:
    case HIPDNN_POINTWISE_SOFTPLUS_BWD:
    case HIPDNN_POINTWISE_SUB:
    case HIPDNN_POINTWISE_SWISH_BWD:
    case HIPDNN_POINTWISE_TANH_BWD: return 2;
    default: return 1;
  }
}

/// Whether `in` broadcasts to `out`: dims compared from the last one, each equal or 1.
bool broadcasts(const Tensor& in, const Tensor& out) {
  if (in.rank() > out.rank()) return false;
  const std::size_t missing = out.dims.size() - in.dims.size();
  for (std::size_t i = 0; i < in.dims.size(); ++i) {
    if (in.dims[i] != 1 && in.dims[i] != out.dims[missing + i]) return false;
  }
  return true;
}

void check_axis(const OperationDescriptor& operation, const Tensor& out) {
  if (operation.integer(HIPDNN_ATTR_POINTWISE_MODE) != HIPDNN_POINTWISE_GEN_INDEX) return;
  const std::int64_t axis = operation.integer_or(HIPDNN_ATTR_POINTWISE_AXIS, -1);
  if (axis < 0 || axis >= out.rank()) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(HIPDNN_ATTR_POINTWISE_AXIS), " must be set and in [0, ",
         out.rank(), ") for GEN_INDEX");
  }
}

}  // namespace

void validate_pointwise(const OperationDescriptor& operation) {
  constexpr std::array inputs{HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT, HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT,
                              HIPDNN_ATTR_OPERATION_POINTWISE_IN_2_EXT};
  const Tensor& out = operation.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT);
  const std::int64_t mode = operation.integer(HIPDNN_ATTR_POINTWISE_MODE);
  const auto wanted = static_cast<std::size_t>(arity(mode));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor* in = operation.find_tensor(inputs[i]);
    if ((in != nullptr) != (i < wanted)) {
      fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ",
           enumerator_name(HIPDNN_TYPE_POINTWISE_MODE, static_cast<int>(mode)).value_or("mode"), " takes ", wanted, " inputs, but ",
           attribute_name(inputs[i]), in != nullptr ? " is set" : " is not set");
    }
    if (in != nullptr && !broadcasts(*in, out)) {
      fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": input ", describe(*in), " does not broadcast to ", describe(out));
    }
  }
  check_axis(operation, out);
}

void validate_reduction(const OperationDescriptor& operation) {
  const Tensor& x = operation.tensor(HIPDNN_ATTR_OPERATION_REDUCTION_XDESC);
  const Tensor& y = operation.tensor(HIPDNN_ATTR_OPERATION_REDUCTION_YDESC);
  bool fits = x.rank() == y.rank();
  for (std::size_t i = 0; fits && i < x.dims.size(); ++i) fits = y.dims[i] == 1 || y.dims[i] == x.dims[i];
  if (!fits) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": each dim of ", describe(y), " must be 1 (reduced) or that of ", describe(x));
  }
}

void validate_matmul(const OperationDescriptor& operation) {
  const Tensor& a = operation.tensor(HIPDNN_ATTR_OPERATION_MATMUL_ADESC);
  const Tensor& b = operation.tensor(HIPDNN_ATTR_OPERATION_MATMUL_BDESC);
  const Tensor& c = operation.tensor(HIPDNN_ATTR_OPERATION_MATMUL_CDESC);
  if (a.rank() < 2 || a.rank() != b.rank() || a.rank() != c.rank()) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": A ", describe(a), ", B ", describe(b), ", C ", describe(c),
         " must have one common rank of at least 2");
  }
  const std::size_t rows = a.dims.size() - 2;
  const std::size_t columns = a.dims.size() - 1;
  if (a.dims[columns] != b.dims[rows]) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": the last dim of A ", describe(a), " must equal the last but one of B ", describe(b));
  }
  if (c.dims[rows] != a.dims[rows] || c.dims[columns] != b.dims[columns]) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": C ", describe(c), " must end in [", a.dims[rows], ", ", b.dims[columns], "]");
  }
  for (std::size_t i = 0; i < rows; ++i) {
    const std::int64_t batch = a.dims[i] == 1 ? b.dims[i] : a.dims[i];
    if ((b.dims[i] != 1 && b.dims[i] != batch) || c.dims[i] != batch) {
      fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": batch dim ", i, " of A ", describe(a), ", B ", describe(b), ", C ", describe(c),
           " does not broadcast");
    }
  }
}

}  // namespace hipdnn_port
