// A kernel of dot products of float32 rows, as of rows of activations with rows of weights that lie as a model stores them.
#pragma once

#include <cstdint>

namespace hipdnn_port {

/// Columns of one call.
constexpr std::int64_t kDotColumns = 4;

/// sums[r][c] += rows[r] . column c, over elements [first, first + depth) of rows, of which columns hold no others.
struct DotsArgs {
  const float* const* rows = nullptr;
  std::int64_t count = 0;               ///< of rows
  std::int64_t first = 0;
  std::int64_t depth = 0;
  const float* columns = nullptr;
  std::int64_t column_step = 0;         ///< from one column to the next
  std::int64_t width = 0;               ///< up to kDotColumns
  const float* next = nullptr;          ///< columns of the next call, to be fetched meanwhile; may be null
  float (*sums)[kDotColumns] = nullptr;
};

using DotsKernel = void (*)(const DotsArgs&);

}  // namespace hipdnn_port
