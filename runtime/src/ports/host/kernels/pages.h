// Rows of sequences that lie in pages of common memory, which a table (batch, pages of a sequence) of i32 names.
#pragma once

#include "kernel.h"

namespace hipdnn_port::kernels {

/// A row of a sequence, and the pages that there are.
struct PagedRow {
  std::int64_t batch = 0;
  std::int64_t row = 0;
  std::int64_t pages = 0;
  std::int64_t page_rows = 0;
};

/// Where a row lies.
struct Place {
  std::int64_t page = 0;
  std::int64_t row = 0;
};

/// Refuses a tensor that is no table for a batch.
inline void expect_page_table(const Image& image, std::size_t index, std::int64_t batches) {
  const Tensor& table = image.tensors[index];
  if (table.dtype != DType::i32) refuse("tensors[", index, "].dtype: expected i32, got ", info_of(table.dtype).name);
  if (table.rank() != 2 || table.dims[0] != batches) refuse("tensors[", index, "].dims: expected [", batches, ", pages], got ", show(table.dims));
}

/// Throws KernelError where the table names a page that there is not.
inline Place place_in_pages(const Operands& operands, const Tensor& table, std::size_t index, const PagedRow& row) {
  const std::int64_t number = row.row / row.page_rows;
  const std::int64_t page = operands.at<std::int32_t>(index)[row.batch * table.strides[0] + number * table.strides[1]];
  if (page < 0 || page >= row.pages) {
    refuse("tensors[", index, "]: page ", number, " of batch ", row.batch, " is ", page, ", there are pages 0 to ", row.pages - 1);
  }
  return {page, row.row % row.page_rows};
}

}  // namespace hipdnn_port::kernels
