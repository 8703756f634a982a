// Shape checks of scaled dot product attention.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "names.h"
#include "operation_descriptor.h"
#include "status.h"
#include "validate.h"

namespace hipdnn_port {
namespace {

using Dims = std::vector<std::int64_t>;

const Tensor& rank_4(const OperationDescriptor& operation, int name) {
  const Tensor& tensor = operation.tensor(name);
  if (tensor.rank() != 4) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(name), " must have rank 4 (batch, head, sequence, feature), got ",
         describe(tensor));
  }
  return tensor;
}

void expect_broadcastable(const OperationDescriptor& operation, int name, const Dims& full) {
  const Tensor* tensor = operation.find_tensor(name);
  if (tensor == nullptr) return;
  bool fits = tensor->dims.size() == full.size();
  for (std::size_t d = 0; fits && d < full.size(); ++d) fits = tensor->dims[d] == 1 || tensor->dims[d] == full[d];
  if (!fits) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(name), " is ", describe(*tensor), ", each dim must be 1 or that of ",
         show(full));
  }
}

/// Key or value heads are shared by equal groups of query heads. Pages are of no batch.
void expect_grouped(const OperationDescriptor& operation, int name, const Tensor& q, bool is_paged) {
  const Tensor& tensor = operation.tensor(name);
  if (!is_paged && tensor.dims[0] != q.dims[0]) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(name), " is ", describe(tensor), ", expected the batch of ", describe(q));
  }
  if (q.dims[1] % tensor.dims[1] != 0) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": the heads of ", describe(q), " must be a multiple of those of ", describe(tensor));
  }
}

/// Tables (batch, 1, pages of a sequence, 1) for both keys and values, which are (page, head, row, feature). Returns keys of a sequence.
std::int64_t check_pages(const OperationDescriptor& operation, std::int64_t batches) {
  constexpr int of_keys = HIPDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC, of_values = HIPDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_VDESC;
  if (!operation.has(of_keys) || !operation.has(of_values)) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(of_keys), " and ", attribute_name(of_values), " must be given together");
  }
  if (operation.integer_or(HIPDNN_ATTR_SDPA_FWD_PADDING_MASK_EXT, 0) == 0) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": pages need ", attribute_name(HIPDNN_ATTR_SDPA_FWD_PADDING_MASK_EXT), " and lengths");
  }
  const std::int64_t pages = rank_4(operation, of_keys).dims[2];
  for (const int name : {of_keys, of_values}) operation.expect_dims(name, {batches, 1, pages, 1});
  const std::int64_t keys = pages * operation.tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_KDESC).dims[2];
  constexpr int name = HIPDNN_ATTR_SDPA_FWD_MAX_SEQ_LEN_KV_EXT;
  const std::int64_t longest = operation.integer_or(name, keys);
  if (longest < 1 || longest > keys) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(name), " = ", longest, ", expected 1 to ", keys);
  }
  return longest;
}

void check_lengths(const OperationDescriptor& operation, std::int64_t batches) {
  const bool is_padded = operation.integer_or(HIPDNN_ATTR_SDPA_FWD_PADDING_MASK_EXT, 0) != 0;
  for (const int name : {HIPDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, HIPDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC}) {
    operation.expect_dims(name, {batches, 1, 1, 1});
    if (operation.has(name) != is_padded) {
      fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(name), " must be given exactly when ",
           attribute_name(HIPDNN_ATTR_SDPA_FWD_PADDING_MASK_EXT), " is true");
    }
  }
}

/// Scores are bounded by it, so it is a number above 0.
void check_soft_cap(const OperationDescriptor& operation) {
  constexpr int name = sdpa_soft_cap;
  if (!operation.has(name)) return;
  const double cap = operation.reals(name).at(0);
  if (!(cap > 0.0) || std::isinf(cap)) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(name), " = ", cap, ", expected a number above 0");
  }
}

void check_band(const OperationDescriptor& operation) {
  for (const auto& [name, least] : {std::pair{HIPDNN_ATTR_SDPA_FWD_LEFT_BOUND_EXT, 1}, {HIPDNN_ATTR_SDPA_FWD_RIGHT_BOUND_EXT, 0}}) {
    if (operation.has(name) && operation.integer(name) < least) {
      fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(name), " = ", operation.integer(name), ", expected at least ", least);
    }
  }
}

}  // namespace

void validate_sdpa_forward(const OperationDescriptor& operation) {
  const Tensor& q = rank_4(operation, HIPDNN_ATTR_OPERATION_SDPA_FWD_QDESC);
  const Tensor& k = rank_4(operation, HIPDNN_ATTR_OPERATION_SDPA_FWD_KDESC);
  const Tensor& v = rank_4(operation, HIPDNN_ATTR_OPERATION_SDPA_FWD_VDESC);
  rank_4(operation, HIPDNN_ATTR_OPERATION_SDPA_FWD_ODESC);
  const bool is_paged = operation.has(HIPDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC) || operation.has(HIPDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_VDESC);
  expect_grouped(operation, HIPDNN_ATTR_OPERATION_SDPA_FWD_KDESC, q, is_paged);
  expect_grouped(operation, HIPDNN_ATTR_OPERATION_SDPA_FWD_VDESC, q, is_paged);
  if (k.dims[3] != q.dims[3]) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": the last dims of ", describe(q), " and ", describe(k), " must be equal");
  }
  if (!is_paged && v.dims[2] != k.dims[2]) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", describe(k), " and ", describe(v), " must have as many keys as values");
  }
  const std::int64_t batches = q.dims[0], heads = q.dims[1], queries = q.dims[2];
  const std::int64_t keys = is_paged ? check_pages(operation, batches) : k.dims[2];
  operation.expect_dims(HIPDNN_ATTR_OPERATION_SDPA_FWD_ODESC, {batches, heads, queries, v.dims[3]});
  expect_broadcastable(operation, HIPDNN_ATTR_OPERATION_SDPA_FWD_ATTN_MASK_EXT, {batches, heads, queries, keys});
  for (const int name :
       {HIPDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, HIPDNN_ATTR_OPERATION_SDPA_FWD_MAX_EXT, HIPDNN_ATTR_OPERATION_SDPA_FWD_SUM_EXP_EXT}) {
    operation.expect_dims(name, {batches, heads, queries, 1});
  }
  const Tensor* scale = operation.find_tensor(HIPDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC);
  if (scale != nullptr && scale->element_count() != 1) {
    fail(HIPDNN_STATUS_BAD_PARAM, operation.label(), ": ", attribute_name(HIPDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC), " is ", describe(*scale),
         ", expected one element");
  }
  operation.expect_dims(HIPDNN_ATTR_OPERATION_SDPA_FWD_SINK_TOKEN_EXT, {1, heads, 1, 1});
  check_lengths(operation, batches);
  check_soft_cap(operation);
  check_band(operation);
}

}  // namespace hipdnn_port
