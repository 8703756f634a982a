// Attention of some queries on the keys and values they share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels_tile.h"
#include "sdpa_problem.h"

namespace hipdnn_port {

/// Rows [first, last) of one group of heads with common keys and values; row r is query r % queries of the group's head r / queries.
struct SdpaTask {
  std::int64_t batch = 0;
  std::int64_t first_head = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// What all tasks of a plan have in common: sizes of blocks, and where they lie in a thread's scratch memory. Immutable.
class SdpaBlocks {
 public:
  SdpaBlocks(SdpaProblem problem, std::int64_t most_rows);

  const SdpaProblem& problem() const { return problem_; }
  std::int64_t scratch_bytes() const { return scratch_floats_ * static_cast<std::int64_t>(sizeof(float)); }
  /// Runs one task; `scratch` has scratch_bytes() and is used by nobody else meanwhile.
  void run(const SdpaTask& task, void* const* pointers, std::byte* scratch) const;

 private:
  friend class SdpaRun;

  SdpaProblem problem_;
  const AttentionKernels& kernels_;
  std::int64_t depth_;         ///< of packed queries and keys, with padding
  std::int64_t value_depth_;   ///< of packed values and results, with padding
  std::int64_t key_columns_;   ///< of a block's transposed keys, with padding
  std::int64_t scratch_floats_ = 0;
  std::int64_t queries_ = 0, scores_ = 0, keys_ = 0, rows_ = 0, values_ = 0, results_ = 0, max_ = 0, sum_ = 0, mask_ = 0;  ///< offsets
};

}  // namespace hipdnn_port
