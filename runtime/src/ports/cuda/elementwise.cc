#include "elementwise.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace hipdnn_cuda {
namespace {

using hipdnn_port::Graph;
using hipdnn_port::Node;
using hipdnn_port::Tensor;
using Dims = std::vector<std::int64_t>;

constexpr std::size_t most_dims = 3;
/// Elements of a row where nothing else says how long rows are.
constexpr std::int64_t row_elements = 1024;

bool is_scalar(const Tensor& tensor) { return tensor.element_count() == 1; }

/// Merges dims of all tensors of a graph in step. Scalars stay out of it, whatever their ranks.
class Merger {
 public:
  explicit Merger(Graph& graph) {
    for (Tensor& tensor : graph.tensors) {
      // A stride of zero is another way to say that a tensor broadcasts.
      for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
        if (tensor.strides[d] == 0) tensor.dims[d] = 1;
      }
      (is_scalar(tensor) ? scalars_ : tensors_).push_back(&tensor);
    }
  }

  /// The graph is not to be used where the answer is false.
  bool run() {
    if (!find_full_dims()) return false;
    order_dims();
    merge();
    if (merged_.size() > most_dims) return false;
    for (Tensor* tensor : tensors_) reshape(*tensor);
    for (Tensor* scalar : scalars_) scalar->dims = scalar->strides = Dims(most_dims, 1);
    return true;
  }

 private:
  /// Whether all tensors have one rank, and each dim is full or 1.
  bool find_full_dims() {
    if (tensors_.empty()) return false;
    full_.assign(tensors_.front()->dims.size(), 1);
    for (const Tensor* tensor : tensors_) {
      if (tensor->dims.size() != full_.size()) return false;
      for (std::size_t d = 0; d < full_.size(); ++d) full_[d] = std::max(full_[d], tensor->dims[d]);
    }
    return std::ranges::all_of(tensors_, [&](const Tensor* tensor) {
      return std::ranges::equal(tensor->dims, full_, [](std::int64_t size, std::int64_t most) { return size == 1 || size == most; });
    });
  }

  /// Slowest first, as the largest tensor in memory lies.
  void order_dims() {
    const Tensor* largest = nullptr;
    for (const Tensor* tensor : tensors_) {
      if (!tensor->is_virtual && (largest == nullptr || tensor->element_count() > largest->element_count())) largest = tensor;
    }
    for (std::size_t d = 0; d < full_.size(); ++d) {
      if (full_[d] > 1) order_.push_back(d);
    }
    if (largest != nullptr) std::ranges::stable_sort(order_, std::ranges::greater(), [&](std::size_t d) { return largest->strides[d]; });
  }

  bool may_merge(std::size_t outer, std::size_t inner) const {
    return std::ranges::all_of(tensors_, [&](const Tensor* tensor) {
      if (tensor->dims[outer] == 1 || tensor->dims[inner] == 1) return tensor->dims[outer] == 1 && tensor->dims[inner] == 1;
      return tensor->is_virtual || tensor->strides[outer] == tensor->dims[inner] * tensor->strides[inner];
    });
  }

  void merge() {
    for (const std::size_t dim : order_) {
      if (!merged_.empty() && may_merge(merged_.back().back(), dim)) {
        merged_.back().push_back(dim);
      } else {
        merged_.push_back({dim});
      }
    }
  }

  void reshape(Tensor& tensor) const {
    Dims dims, strides;
    for (const auto& group : merged_) {
      dims.push_back(std::accumulate(group.begin(), group.end(), std::int64_t{1}, [&](std::int64_t count, std::size_t d) { return count * tensor.dims[d]; }));
      strides.push_back(tensor.strides[group.back()]);
    }
    if (dims.size() == 1) {
      const std::int64_t row = std::gcd(dims[0], row_elements);
      dims = {dims[0] / row, row};
      strides = {strides[0] * row, strides[0]};
    }
    dims.insert(dims.begin(), most_dims - dims.size(), 1);
    strides.insert(strides.begin(), most_dims - strides.size(), 1);
    std::int64_t extent = 1;
    for (std::size_t d = most_dims; d-- > 0;) {
      if (dims[d] == 1 || tensor.is_virtual) strides[d] = extent;
      extent = std::max(extent, strides[d] * dims[d]);
    }
    tensor.dims = std::move(dims);
    tensor.strides = std::move(strides);
  }

  std::vector<Tensor*> tensors_, scalars_;
  Dims full_;
  std::vector<std::size_t> order_;
  std::vector<std::vector<std::size_t>> merged_;
};

}  // namespace

std::optional<std::string> why_not_elementwise(const Graph& graph) {
  const Graph merged = with_merged_dims(graph);
  const std::size_t rank = std::ranges::max(merged.tensors, {}, [](const Tensor& tensor) { return tensor.dims.size(); }).dims.size();
  Dims full(rank, 1);
  for (const Tensor& tensor : merged.tensors) {
    for (std::size_t d = 0; tensor.dims.size() == rank && d < rank; ++d) full[d] = std::max(full[d], tensor.dims[d]);
  }
  for (const Tensor& tensor : merged.tensors) {
    const bool has_zero = std::ranges::any_of(tensor.strides, [](std::int64_t stride) { return stride == 0; });
    if ((is_scalar(tensor) && !tensor.is_virtual) || (tensor.dims == full && !has_zero)) continue;
    if (tensor.is_virtual) return "an intermediate of a pointwise graph that broadcasts: " + hipdnn_port::describe(tensor);
    if (rank != most_dims || tensor.dims.size() != rank || tensor.dims[0] != full[0] || has_zero) {
      return "an operand of a pointwise graph that broadcasts beyond two dims: " + hipdnn_port::describe(tensor);
    }
  }
  return std::nullopt;
}

bool is_elementwise(const Graph& graph) {
  return std::ranges::all_of(graph.nodes, [](const Node& node) {
    // The indices of a dim are not those of a merged one.
    return node.type == HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR && node.integer(HIPDNN_ATTR_POINTWISE_MODE) != HIPDNN_POINTWISE_GEN_INDEX;
  });
}

Graph with_merged_dims(const Graph& graph) {
  Graph made = graph;
  return Merger(made).run() ? made : graph;
}

}  // namespace hipdnn_cuda
