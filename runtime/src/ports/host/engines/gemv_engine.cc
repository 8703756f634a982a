// HOST_GEMV_ENGINE: one row times one matrix of float32 where it lies, row by row or by columns, with an epilogue of pointwise operations, as
// in a step of text generation. Nothing is packed. It takes as long as the matrix takes to be read, in several streams at once.
#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "frontend/engine.h"
#include "frontend/status.h"
#include "kernels_tile.h"
#include "matmul_epilogue.h"
#include "matmul_rows.h"
#include "one_matrix_matmul.h"
#include "packed_memory.h"
#include "rowwise_engine.h"
#include "rowwise_parallel.h"
#include "rowwise_program.h"

namespace hipdnn_port {
namespace {

/// Columns of one part: their sums lie on cache lines of their own.
constexpr std::int64_t kPartColumns = 16;
/// Rows of one part.
constexpr std::int64_t kPartRows = 8;
/// Columns of rows at once at most: their sums stay in the second-level cache.
constexpr std::int64_t kRunColumns = 16384;
/// Less deep matrices are oneDNN's: their streams are short.
constexpr std::int64_t kLeastDepth = 32;

struct Matrix {
  std::int64_t depth = 0, columns = 0;
  std::int64_t step = 0;  ///< elements from one row to the next; where `is_by_columns`, from one column
  bool is_by_columns = false;
};

Matrix matrix_of(const Tensor& tensor) {
  const std::size_t last = tensor.dims.size() - 1;
  Matrix found{.depth = tensor.dims[last - 1], .columns = tensor.dims[last]};
  const bool are_columns_adjacent = tensor.strides[last - 1] == 1 || found.depth == 1;
  const bool are_rows_adjacent = tensor.strides[last] == 1;
  if (!are_rows_adjacent && !are_columns_adjacent) throw Refusal(text(describe(tensor), " has gaps between its elements"));
  found.is_by_columns = are_columns_adjacent && (!are_rows_adjacent || found.columns == 1);
  found.step = tensor.strides[found.is_by_columns ? last : last - 1];
  if (found.depth < kLeastDepth) throw Refusal(text(describe(tensor), " has fewer than ", kLeastDepth, " rows"));
  return found;
}

struct Gemv {
  OneMatrixMatmul matmul;
  Matrix matrix;
};

Gemv read_gemv(const Graph& graph) {
  Gemv found{.matmul = read_one_matrix_matmul(graph), .matrix = {}};
  const Tensor& b = graph.tensor(found.matmul.b);
  if (b.dtype != HIPDNN_DATA_FLOAT) throw Refusal(text("the right operand is ", describe(b), ", expected float32"));
  const std::vector<std::int64_t>& dims = graph.tensor(found.matmul.epilogue.result).dims;
  if (std::any_of(dims.begin(), dims.end() - 1, [](std::int64_t size) { return size != 1; })) throw Refusal("has more than one row");
  found.matrix = matrix_of(b);
  return found;
}

class GemvPlan final : public Plan {
 public:
  GemvPlan(const Graph& graph, const Gemv& read, const PlanOptions& options) : matrix_(read.matrix), threads_(std::max(1, options.threads)) {
    uids_ = pointer_uids(graph);
    weights_pointer_ = pointer_of(graph, read.matmul.b, uids_);
    std::vector<std::int64_t> left = graph.tensor(read.matmul.epilogue.result).dims;
    left.back() = matrix_.depth;
    left_ = {Rows(graph.tensor(read.matmul.a), left), pointer_of(graph, read.matmul.a, uids_)};
    result_.emplace(graph, read.matmul.epilogue, uids_);
    sums_row_ = parts_of(matrix_.columns, kPartColumns) * kPartColumns;
    left_at_ = sums_row_ * (matrix_.is_by_columns ? 1 : threads_);
    workspace_bytes_ = whole_lines((left_at_ + matrix_.depth) * static_cast<std::int64_t>(sizeof(float)));
  }

  std::string describe() const override {
    return text("gemv of f32 by ", matrix_.is_by_columns ? "columns, " : "rows, ", tile_kernels().isa, result_->has_steps() ? " + epilogue" : "");
  }

  void execute(void* const* pointers, void* workspace, const Launch& launch) const override {
    auto* const sums = static_cast<float*>(workspace);
    const auto* const weights = static_cast<const float*>(pointers[weights_pointer_]);
    const float* const a = left(pointers, sums + left_at_);
    const int threads = std::min(threads_, launch.threads);
    if (matrix_.is_by_columns) return multiply_columns(pointers, weights, a, sums, threads);
    const std::int64_t parts = parts_of(matrix_.depth, kPartRows);
    const int useful = useful_threads(threads, parts, matrix_.depth * matrix_.columns, 1);
    parallel_ranges(useful, parts, [&](std::int64_t first, std::int64_t last, int thread) {
      multiply_rows(weights, a, first * kPartRows, std::min(last * kPartRows, matrix_.depth), sums + thread * sums_row_);
    });
    in_columns(threads, useful, [&](std::int64_t first, std::int64_t last) {
      for (int thread = 1; thread < useful; ++thread) {
        for (std::int64_t n = first; n < last; ++n) sums[n] += sums[thread * sums_row_ + n];
      }
      finish(pointers, sums, first, last);
    });
  }

 private:
  const float* left(void* const* pointers, float* copy) const {
    void* const base = pointers[left_->pointer];
    if (const void* in_place = left_->rows.in_place(base, 0, 0)) return static_cast<const float*>(in_place);
    left_->rows.load(base, 0, 0, matrix_.depth, copy);
    return copy;
  }

  /// Calls body(first, last) with columns that cover the matrix, of which each takes `work` additions.
  template <class Body>
  void in_columns(int threads, std::int64_t work, const Body& body) const {
    const std::int64_t parts = parts_of(matrix_.columns, kPartColumns);
    parallel_ranges(useful_threads(threads, parts, matrix_.columns * work, 1), parts, [&](std::int64_t first, std::int64_t last, int) {
      body(first * kPartColumns, std::min(last * kPartColumns, matrix_.columns));
    });
  }

  /// What rows first to last add to all columns.
  void multiply_rows(const float* weights, const float* a, std::int64_t first, std::int64_t last, float* sums) const {
    for (std::int64_t column = 0; column < matrix_.columns; column += kRunColumns) {
      tile_kernels().gemv({.a = a + first,
                           .depth = last - first,
                           .weights = weights + first * matrix_.step + column,
                           .row_step = matrix_.step,
                           .columns = std::min(kRunColumns, matrix_.columns - column),
                           .sums = sums + column});
    }
  }

  void multiply_columns(void* const* pointers, const float* weights, const float* a, float* sums, int threads) const {
    in_columns(threads, matrix_.depth, [&](std::int64_t first, std::int64_t last) {
      const std::int64_t length = (last - first) / kDotColumns;
      for (std::int64_t n = 0; n < length; ++n) multiply_columns_at(weights, a, first + n, length, kDotColumns, sums);
      for (std::int64_t n = first + length * kDotColumns; n < last; ++n) multiply_columns_at(weights, a, n, 0, 1, sums);
      finish(pointers, sums, first, last);
    });
  }

  /// Columns n, n + gap, n + 2 * gap and so on, `width` of them.
  void multiply_columns_at(const float* weights, const float* a, std::int64_t n, std::int64_t gap, std::int64_t width, float* sums) const {
    float found[1][kDotColumns] = {};
    tile_kernels().dots({.rows = &a,
                         .count = 1,
                         .depth = matrix_.depth,
                         .columns = weights + n * matrix_.step,
                         .column_step = gap * matrix_.step,
                         .width = width,
                         .sums = found});
    for (std::int64_t i = 0; i < width; ++i) sums[n + i * gap] = found[0][i];
  }

  void finish(void* const* pointers, float* sums, std::int64_t first, std::int64_t last) const {
    for (std::int64_t n = first; n < last; n += MatmulResult::kMostColumns) {
      result_->finish(pointers, 0, 1, n, std::min(MatmulResult::kMostColumns, last - n), sums + n, 0);
    }
  }

  Matrix matrix_;
  std::size_t weights_pointer_ = 0;
  std::optional<OperandRows> left_;
  std::optional<MatmulResult> result_;
  int threads_;
  std::int64_t sums_row_ = 0;  ///< sums of one thread in the workspace
  std::int64_t left_at_ = 0;   ///< behind them
};

class GemvEngine final : public Engine {
 public:
  std::string_view name() const override { return "HOST_GEMV_ENGINE"; }

  std::optional<std::string> refuses(const Graph& graph) const override {
    return refusal_of([&] { read_gemv(graph); });
  }

  std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions& options) const override {
    return std::make_unique<GemvPlan>(graph, read_gemv(graph), options);
  }
};

}  // namespace

const Engine& gemv_engine() {
  static const GemvEngine engine;
  return engine;
}

}  // namespace hipdnn_port
