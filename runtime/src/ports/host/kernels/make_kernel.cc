// The closed set of functions, and what all their kernels share.
#include <algorithm>
#include <array>
#include <utility>

#include "functions.h"
#include "kernel.h"

namespace hipdnn_port::kernels {
namespace {

using Maker = std::unique_ptr<Kernel> (*)(const Image&);

constexpr std::array<std::pair<std::string_view, Maker>, 21> makers{{
    {"elementwise", make_elementwise},
    {"gather", make_gather},
    {"gather_elements", make_gather_elements},
    {"gather_nd", make_gather_nd},
    {"scatter_elements", make_scatter_elements},
    {"scatter_nd", make_scatter_nd},
    {"cache_update", make_cache_update},
    {"decode_attention", make_decode_attention},
    {"expert_matmul", make_expert_matmul},
    {"top_k", make_top_k},
    {"suppress_boxes", make_suppress_boxes},
    {"recurrence", make_recurrence},
    {"quantized_recurrence", make_quantized_recurrence},
    {"arg_reduce", make_arg_reduce},
    {"scan", make_scan},
    {"reduce", make_reduce},
    {"pad", make_pad},
    {"slice", make_slice},
    {"resize", make_resize},
    {"grid_sample", make_grid_sample},
    {"reverse_sequence", make_reverse_sequence},
}};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Image& image) {
  const auto found = std::ranges::find(makers, std::string_view(image.function), [](const auto& row) { return row.first; });
  if (found == makers.end()) {
    std::string known;
    for (const auto& [name, maker] : makers) known += (known.empty() ? "" : ", ") + std::string(name);
    refuse("no function is named '", image.function, "'; known are ", known);
  }
  return found->second(image);
}

void Kernel::launch(void** addresses, int threads) const {
  const Operands operands(addresses);
  bool has_results = false;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].elements() == 0) continue;
    const void* pointer = operands.at(i);
    if (pointer == nullptr) refuse("tensors[", i, "]: null pointer");
    if ((reinterpret_cast<std::uintptr_t>(pointer) & static_cast<std::uintptr_t>(tensors_[i].bytes() - 1)) != 0) {
      refuse("tensors[", i, "]: the pointer is not aligned to ", tensors_[i].bytes(), " bytes");
    }
    has_results |= tensors_[i].is_output;
  }
  if (has_results) run(operands, threads);
}

void expect_index_dtype(const Image& image, std::size_t tensor) {
  const DType dtype = image.tensors[tensor].dtype;
  if (dtype != DType::i32 && dtype != DType::i64) refuse("tensors[", tensor, "].dtype: expected i32 or i64, got ", info_of(dtype).name);
}

void expect_inside(const Image& image, std::size_t index, std::size_t data, std::size_t axis) {
  const Dims& inner = image.tensors[index].dims;
  const Dims& outer = image.tensors[data].dims;
  bool fits = inner.size() == outer.size();
  for (std::size_t d = 0; fits && d < inner.size(); ++d) fits = d == axis || inner[d] <= outer[d];
  if (!fits) refuse("tensors[", index, "].dims: expected dims within ", show(outer), " but for dim ", axis, ", got ", show(inner));
}

}  // namespace hipdnn_port::kernels
