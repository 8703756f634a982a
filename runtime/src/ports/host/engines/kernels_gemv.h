// A kernel of one row times a matrix of float32 that lies as a model stores it, row by row. One that lies by columns: kernels_dots.h.
#pragma once

#include <cstdint>

namespace hipdnn_port {

/// sums[n] = sum over k of a[k] * w[k, n].
struct GemvArgs {
  const float* a = nullptr;
  std::int64_t depth = 0;
  const float* weights = nullptr;
  std::int64_t row_step = 0;  ///< elements from one row of the matrix to the next
  std::int64_t columns = 0;
  float* sums = nullptr;
};

using GemvKernel = void (*)(const GemvArgs&);

}  // namespace hipdnn_port
