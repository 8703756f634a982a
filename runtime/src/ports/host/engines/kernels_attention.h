// Kernels of attention on float32 blocks that stay in cache: products of small matrices, dot products, rows of softmax.
#pragma once

#include <cstdint>

namespace hipdnn_port {

/// c = a * b, or c += a * b. Row-major; the columns of b and c are adjacent and a multiple of `kColumnStep`.
struct ProductArgs {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  const float* a = nullptr;
  std::int64_t a_row = 0;
  const float* b = nullptr;
  std::int64_t b_row = 0;
  float* c = nullptr;
  std::int64_t c_row = 0;
  bool accumulates = false;
};

/// Elements that rows of packed blocks are a multiple of.
constexpr std::int64_t kColumnStep = 16;

/// One query's scores against a block of keys, and what its softmax knows of earlier blocks.
struct SoftmaxArgs {
  float* scores = nullptr;       ///< becomes exp(score - max)
  std::int64_t count = 0;
  std::int64_t first = 0;        ///< keys outside of [first, last) are not attended
  std::int64_t last = 0;
  float scale = 1.0f;            ///< of the scores as they come
  const float* mask = nullptr;   ///< per key, or null
  bool mask_selects = false;     ///< mask is 0 for keys not attended; else it is added to the scores
  float* max = nullptr;          ///< greatest score so far, -inf before the first
  float* sum = nullptr;          ///< of exp(score - max) so far
  float* out = nullptr;          ///< weighted sum of values so far, rescaled to the new max
  std::int64_t out_count = 0;
};

struct AttentionKernels {
  void (*product)(const ProductArgs&);
  /// c[r, j] = a[r, :] . b[j, :]: as product with b transposed. For few rows; depth is a multiple of kColumnStep, columns are any.
  void (*dots)(const ProductArgs&);
  void (*softmax)(const SoftmaxArgs&);
  /// values[i] = cap * tanh(values[i] * factor / cap), cap > 0.
  void (*soft_cap)(float* values, std::int64_t count, float factor, float cap);
  /// values[i] *= factor.
  void (*scale)(float* values, std::int64_t count, float factor);
};

}  // namespace hipdnn_port
