// Scaled dot product attention as HOST_SDPA_ENGINE computes it, read from a graph.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "frontend/graph.h"

namespace hipdnn_port {

/// A tensor of rank 4 (batch, head, query or key, feature) and which of the plan's pointers it is. A dim of 1 that is broadcast has stride 0.
struct SdpaOperand {
  std::size_t pointer = 0;
  hipdnnDataType_t dtype = HIPDNN_DATA_FLOAT;
  std::array<std::int64_t, 4> strides{};

  /// Address of an element.
  const std::byte* at(void* const* pointers, std::int64_t batch, std::int64_t head, std::int64_t row) const;
  std::byte* at_output(void* const* pointers, std::int64_t batch, std::int64_t head, std::int64_t row) const;
};

/// Rows of one head that lie at equal distances, from the first one on.
struct HeadRows {
  const std::byte* from = nullptr;
  std::int64_t count = 0;
};

/// Keys [first, last) that a query attends.
struct KeyRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// softmax(scale * q k^T + mask) v, with the keys of a query bounded by lengths and by a band around the diagonal. A soft cap c makes scores
/// c * tanh(scores / c) before the mask is added; a sink is a score for each head that takes its share of the weights and has no value.
///
/// Paged keys and values are (page, head, row, feature); a page table (batch, 1, pages of a sequence, 1) says which pages the sequence has.
struct SdpaProblem {
  std::int64_t batches = 0;
  std::int64_t heads = 0;
  std::int64_t heads_per_key_head = 1;
  std::int64_t heads_per_value_head = 1;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t depth = 0;        ///< features of queries and keys
  std::int64_t value_depth = 0;
  std::int64_t pages = 0;        ///< of the memory of keys and values; 0 where they are not paged
  std::vector<std::int64_t> uids;
  SdpaOperand q, k, v, o;
  std::optional<SdpaOperand> key_pages{}, value_pages{};  ///< page tables: both or none
  std::int64_t page_rows = 0;
  std::optional<SdpaOperand> mask{}, sink{}, query_lengths{}, key_lengths{};
  std::optional<SdpaOperand> stats{}, max{}, sum_exp{};
  double scale = 1.0;
  std::optional<SdpaOperand> scale_tensor{};  ///< one element, multiplied in when it is not known at plan time
  double soft_cap = 0.0;  ///< 0 for none
  bool is_bottom_right = false;
  std::optional<std::int64_t> left_bound{};   ///< keys more than this behind the diagonal, or just as far, are not attended
  std::optional<std::int64_t> right_bound{};  ///< keys more than this ahead of the diagonal are not attended

  std::int64_t query_length(void* const* pointers, std::int64_t batch) const;
  std::int64_t key_length(void* const* pointers, std::int64_t batch) const;
  /// Throws where a page table names a page that there is not, as far as lengths say that it is read.
  void check_pages(void* const* pointers) const;
  /// Keys, or values, of a head from `first` on: up to `last`, or to the end of a page.
  HeadRows key_rows(void* const* pointers, std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t last) const;
  HeadRows value_rows(void* const* pointers, std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t last) const;
  KeyRange attended(std::int64_t query, std::int64_t query_length, std::int64_t key_length) const;

 private:
  HeadRows rows_of(const SdpaOperand& operand, const std::optional<SdpaOperand>& table, void* const* pointers, std::int64_t batch, std::int64_t head,
               std::int64_t first, std::int64_t last) const;
};

/// Throws Refusal where the graph is no attention this engine computes.
SdpaProblem read_sdpa(const Graph& graph);

}  // namespace hipdnn_port
