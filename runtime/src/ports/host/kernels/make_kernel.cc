// The closed set of functions, and what all their kernels share.
#include <algorithm>
#include <array>
#include <utility>

#include "functions.h"
#include "kernel.h"

namespace hipdnn_host::kernels {
namespace {

using Maker = std::unique_ptr<Kernel> (*)(const Image&);

constexpr std::array<std::pair<std::string_view, Maker>, 2> makers{{
    {"map", make_map},
    {"gather", make_gather},
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
    if (reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(tensors_[i].bytes()) != 0) {
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

}  // namespace hipdnn_host::kernels
