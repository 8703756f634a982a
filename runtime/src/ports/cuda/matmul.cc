#include "matmul.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace hipdnn_cuda {
namespace {

using hipdnn_port::Graph;
using hipdnn_port::Node;
using hipdnn_port::Tensor;

/// Why a graph is no matmul; caught in this file.
struct NoMatmul : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool condition, const char* otherwise) {
  if (!condition) throw NoMatmul(otherwise);
}

/// The stride of a tensor's batch as one dim: 0 where it has one matrix for all.
std::int64_t batch_stride(const Tensor& tensor, const Tensor& result) {
  const auto batch_rank = tensor.dims.size() - 2;
  if (std::all_of(tensor.dims.begin(), tensor.dims.end() - 2, [](std::int64_t dim) { return dim == 1; })) return 0;
  std::optional<std::int64_t> innermost;
  std::int64_t expected = 0;
  for (std::size_t d = batch_rank; d-- > 0;) {
    require(tensor.dims[d] == result.dims[d], "batches broadcast in part");
    if (tensor.dims[d] == 1) continue;
    if (!innermost) innermost = expected = tensor.strides[d];
    require(tensor.strides[d] == expected, "matrices of the batch are not one stride apart");
    expected *= tensor.dims[d];
  }
  return innermost.value_or(0);
}

/// The matrix of a tensor's last two dims, which the matmul takes as (columns of the tensor, rows of the tensor).
Matrix matrix_of(const Tensor& tensor, const Tensor& result) {
  require(tensor.dims.size() == result.dims.size(), "operands differ in rank");
  const std::size_t last = tensor.dims.size() - 1;
  const std::int64_t rows = tensor.dims[last - 1], columns = tensor.dims[last];
  const std::int64_t row_stride = tensor.strides[last - 1], column_stride = tensor.strides[last];
  Matrix matrix;
  matrix.alignment = tensor.byte_alignment;
  matrix.batch_stride = batch_stride(tensor, result);
  if ((column_stride == 1 || columns == 1) && (row_stride >= columns || rows == 1)) {
    matrix.rows = columns;
    matrix.columns = rows;
    matrix.leading = rows == 1 ? columns : row_stride;
  } else {
    require((row_stride == 1 || rows == 1) && (column_stride >= rows || columns == 1), "a matrix has no stride of 1");
    matrix.rows = rows;
    matrix.columns = columns;
    matrix.leading = columns == 1 ? rows : column_stride;
    matrix.is_transposed = true;
  }
  return matrix;
}

/// Whether the tensor is a vector along the last dim of `result`.
bool is_row(const Tensor& tensor, const Tensor& result) {
  return std::all_of(tensor.dims.begin(), tensor.dims.end() - 1, [](std::int64_t dim) { return dim == 1; }) &&
         tensor.dims.back() == result.dims.back() && (tensor.strides.back() == 1 || tensor.dims.back() == 1);
}

Activation activation_of(const Node& node) {
  switch (node.integer(HIPDNN_ATTR_POINTWISE_MODE)) {
    case HIPDNN_POINTWISE_RELU_FWD:
      require(node.real_or(HIPDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0) == 0 && node.real_or(HIPDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0) == 0 &&
                  !std::isfinite(node.real_or(HIPDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, INFINITY)),
              "a ReLU has bounds");
      return Activation::relu;
    case HIPDNN_POINTWISE_GELU_APPROX_TANH_FWD: return Activation::gelu_tanh;
    default: throw NoMatmul("an operation of the epilogue is neither an addition, nor ReLU, nor GELU by tanh");
  }
}

bool is_float8(hipdnnDataType_t type) { return type == HIPDNN_DATA_FP8_E4M3 || type == HIPDNN_DATA_FP8_E5M2; }

class Reader {
 public:
  explicit Reader(const Graph& graph) : graph_(graph) {
    for (const Tensor& tensor : graph.tensors) {
      if (tensor.has_pointer()) matmul_.uids.push_back(tensor.uid);
    }
  }

  Matmul run() {
    require(!graph_.nodes.empty() && graph_.nodes.front().type == HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "it does not begin with a matmul");
    require(graph_.compute_type == HIPDNN_DATA_FLOAT, "it is not computed in f32");
    const Node& first = graph_.nodes.front();
    value_ = first.tensor(HIPDNN_ATTR_OPERATION_MATMUL_CDESC);
    for (std::size_t i = 1; i < graph_.nodes.size(); ++i) add(graph_.nodes[i]);
    const Tensor& result = tensor(value_);
    require(result.dims.size() >= 2, "matrices have two dims");
    require(result.dtype == HIPDNN_DATA_FLOAT || result.dtype == HIPDNN_DATA_HALF || result.dtype == HIPDNN_DATA_BFLOAT16,
            "it is not of f32, f16 or bf16");
    matmul_.dtype = result.dtype;
    matmul_.result = matrix_of(result, result);
    require(!matmul_.result.is_transposed, "the result's last dim has no stride of 1");
    const int a = first.tensor(HIPDNN_ATTR_OPERATION_MATMUL_ADESC), b = first.tensor(HIPDNN_ATTR_OPERATION_MATMUL_BDESC);
    matmul_.left_dtype = tensor(b).dtype;
    matmul_.right_dtype = tensor(a).dtype;
    const bool is_narrow = is_float8(matmul_.left_dtype) && is_float8(matmul_.right_dtype);
    require(is_narrow || (matmul_.left_dtype == matmul_.dtype && matmul_.right_dtype == matmul_.dtype), "types of operands differ");
    matmul_.left = matrix_of(operand(b, matmul_.left_operand), result);
    matmul_.right = matrix_of(operand(a, matmul_.right_operand), result);
    if (is_narrow) require_float8();
    operand(value_, matmul_.result_operand);
    require_sizes(tensor(a).dims, tensor(b).dims, result.dims);
    if (addend_ >= 0) {
      matmul_.addend = matrix_of(operand(addend_, matmul_.addend_operand.emplace()), result);
      require(tensor(addend_).dtype == matmul_.dtype, "types of operands differ");
      require(!matmul_.addend->is_transposed && tensor(addend_).dims == result.dims, "what is added has another order than the result");
    }
    if (bias_ >= 0) {
      require(tensor(bias_).dtype == matmul_.dtype, "types of operands differ");
      constexpr std::int64_t bias_alignment = 16;  // what cuBLASLt takes for granted
      require(operand(bias_, matmul_.bias_operand.emplace()).byte_alignment >= bias_alignment, "a bias is not aligned to 16 bytes");
    }
    for (std::size_t d = 0; d + 2 < result.dims.size(); ++d) matmul_.batch *= result.dims[d];
    join_batch();
    return std::move(matmul_);
  }

 private:
  const Tensor& tensor(int index) const { return graph_.tensor(index); }

  /// What cuBLASLt 12 and 13 ask of floats of 8 bits.
  void require_float8() const {
    constexpr std::int64_t multiple = 16;
    require(matmul_.left_dtype == HIPDNN_DATA_FP8_E4M3 || matmul_.right_dtype == HIPDNN_DATA_FP8_E4M3, "both operands are of E5M2");
    require(matmul_.left.is_transposed && !matmul_.right.is_transposed, "sums of products of 8 bits are not along memory");
    require(matmul_.left.rows % multiple == 0 && matmul_.left.columns % multiple == 0, "sizes of a matrix of 8 bits are no multiples of 16");
    require(matmul_.dtype != HIPDNN_DATA_FLOAT || bias_ < 0, "a bias of f32 is added to products of 8 bits");
  }

  /// A tensor with a pointer.
  const Tensor& operand(int index, std::size_t& position) const {
    const Tensor& found = tensor(index);
    require(found.has_pointer(), "an operand has no pointer");
    position = static_cast<std::size_t>(std::ranges::find(matmul_.uids, found.uid) - matmul_.uids.begin());
    return found;
  }

  static void require_sizes(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b, const std::vector<std::int64_t>& result) {
    const std::size_t last = result.size() - 1;
    require(a[last] == b[last - 1] && a[last - 1] == result[last - 1] && b[last] == result[last], "sizes of the matrices do not match");
  }

  void add(const Node& node) {
    require(node.type == HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "its epilogue is not pointwise");
    require(matmul_.activation == Activation::none, "something follows the activation");
    require(tensor(value_).is_virtual, "an intermediate value is a result");
    const int in = node.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_IN_0_EXT);
    if (node.integer(HIPDNN_ATTR_POINTWISE_MODE) == HIPDNN_POINTWISE_ADD) {
      const int other = node.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT);
      require((in == value_) != (other == value_), "an addition is not of the matmul");
      add_operand(in == value_ ? other : in);
    } else if (node.integer(HIPDNN_ATTR_POINTWISE_MODE) == HIPDNN_POINTWISE_MUL) {
      const int other = node.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_IN_1_EXT);
      require(bias_ < 0 && addend_ < 0 && in == value_ && tensor(other).value, "a product is not of the matmul and a number");
      matmul_.scale *= static_cast<float>(tensor(other).scalar());
    } else {
      require(in == value_, "an operation of the epilogue is not of the matmul");
      matmul_.activation = activation_of(node);
    }
    value_ = node.tensor(HIPDNN_ATTR_OPERATION_POINTWISE_OUT_0_EXT);
  }

  void add_operand(int index) {
    if (is_row(tensor(index), tensor(value_)) && bias_ < 0) {
      bias_ = index;
    } else {
      require(addend_ < 0, "more is added than a bias and one matrix");
      addend_ = index;
    }
  }

  /// One matrix for all of the batch: the rows of the batch are rows of one matrix.
  void join_batch() {
    std::vector<Matrix*> rows{&matmul_.right, &matmul_.result};
    if (matmul_.addend) rows.push_back(&*matmul_.addend);
    const bool joins = matmul_.left.batch_stride == 0 && std::ranges::all_of(rows, [](const Matrix* matrix) {
                         return !matrix->is_transposed && matrix->batch_stride == matrix->leading * matrix->columns;
                       });
    if (matmul_.batch == 1 || !joins) return;
    for (Matrix* matrix : rows) {
      matrix->columns *= matmul_.batch;
      matrix->batch_stride = 0;
    }
    matmul_.batch = 1;
  }

  const Graph& graph_;
  Matmul matmul_;
  int value_ = -1;
  int addend_ = -1;
  int bias_ = -1;
};

}  // namespace

std::optional<Matmul> as_matmul(const Graph& graph, std::string& reason) {
  try {
    return Reader(graph).run();
  } catch (const NoMatmul& no) {
    reason = no.what();
    return std::nullopt;
  }
}

}  // namespace hipdnn_cuda
