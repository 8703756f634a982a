#include "plan/excerpt.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <set>

#include "plan/graph_reading.h"

namespace hipdnn_rt {
namespace {

using Dims = std::vector<std::int64_t>;

/// Whether each entry along a dim of an operation's result is computed from the same entry of its operands.
bool is_entrywise(hipdnnBackendDescriptorType_t operation, std::size_t axis, std::size_t rank) {
  switch (operation) {
    case HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case HIPDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: return axis == 0;
    case HIPDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR:
    case HIPDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR: return axis <= 1;
    case HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: return axis + 2 <= rank;
    case HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: return true;
    default: return false;
  }
}

/// But for what all entries are computed from: filters, and the matrix on the right of rows.
bool is_read_whole(hipdnnBackendAttributeName_t name, std::size_t axis, std::size_t rank) {
  return name == HIPDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W || name == HIPDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W ||
         (name == HIPDNN_ATTR_OPERATION_MATMUL_BDESC && axis + 2 == rank);
}

Dims dims_of(const DescriptorSpec& tensor) { return values_of<std::int64_t>(tensor, HIPDNN_ATTR_TENSOR_DIMENSIONS); }
Dims strides_of(const DescriptorSpec& tensor) { return values_of<std::int64_t>(tensor, HIPDNN_ATTR_TENSOR_STRIDES); }

double count_of(const DescriptorSpec& tensor) {
  double count = 1;
  for (const std::int64_t dim : dims_of(tensor)) count *= static_cast<double>(dim);
  return count;
}

/// Elements from the first to the last of one entry.
std::int64_t entry_extent(const DescriptorSpec& tensor, std::size_t axis) {
  const Dims dims = dims_of(tensor), strides = strides_of(tensor);
  std::int64_t last = 0;
  for (std::size_t d = axis + 1; d < dims.size(); ++d) last += (dims[d] - 1) * strides[d];
  return last + 1;
}

/// How the tensors of a graph go with entries along the first dim that has more than one.
class Entries {
 public:
  explicit Entries(const Executable& executable) : executable_(executable), known_(inputs_of(executable)) {
    for (const std::uint32_t operation : operations_of(executable)) is_independent_ = is_independent_ && add(operation);
    is_independent_ = is_independent_ && count_ > 1 && std::ranges::none_of(apart_, [&](std::uint32_t at) { return whole_.contains(at); });
  }

  /// Zero where entries are not independent, or there is one.
  std::int64_t count() const { return is_independent_ ? count_ : 0; }
  /// Positions of the tensors that have them.
  const std::set<std::uint32_t>& apart() const { return apart_; }
  std::size_t axis() const { return axis_; }

 private:
  bool add(std::uint32_t operation) {
    const DescriptorSpec& spec = executable_.descriptors[operation];
    std::size_t rank = 0;
    for (const std::uint32_t at : tensors_of(executable_, operation)) {
      const DescriptorSpec& tensor = executable_.descriptors[at];
      if (!known_.insert(uid_of(tensor)).second) continue;
      const Dims dims = dims_of(tensor);
      if (count_ == 0) find_axis(dims);
      if (axis_ >= dims.size() || dims[axis_] != count_ || (rank != 0 && rank != dims.size())) return false;
      rank = dims.size();
      if (!take_apart(at)) return false;
    }
    return rank != 0 && is_entrywise(spec.type, axis_, rank) && std::ranges::all_of(spec.attributes, [&](const AttributeSpec& attribute) { return add(attribute, rank); });
  }

  bool add(const AttributeSpec& attribute, std::size_t rank) {
    return std::ranges::all_of(attribute.references, [&](std::uint32_t at) {
      const DescriptorSpec& tensor = executable_.descriptors[at];
      if (!is_tensor(tensor) || !has_pointer(tensor)) return true;
      const Dims dims = dims_of(tensor);
      if (dims.size() != rank) return false;
      if (is_read_whole(attribute.name, axis_, rank) || dims[axis_] == 1) {
        whole_.insert(at);
        return true;
      }
      return dims[axis_] == count_ && take_apart(at);
    });
  }

  void find_axis(const Dims& dims) {
    const auto found = std::ranges::find_if(dims, [](std::int64_t dim) { return dim > 1; });
    if (found == dims.end()) return;
    axis_ = static_cast<std::size_t>(found - dims.begin());
    count_ = *found;
  }

  /// Whether entries lie one behind the other.
  bool take_apart(std::uint32_t at) {
    const DescriptorSpec& tensor = executable_.descriptors[at];
    const Dims dims = dims_of(tensor);
    apart_.insert(at);
    const bool is_first = std::all_of(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(axis_), [](std::int64_t dim) { return dim == 1; });
    return is_first && strides_of(tensor)[axis_] >= entry_extent(tensor, axis_) && element_bits(dtype_of(tensor)).value_or(1) % 8 == 0;
  }

  const Executable& executable_;
  std::set<std::int64_t> known_;
  std::set<std::uint32_t> apart_, whole_;
  std::size_t axis_ = 0;
  std::int64_t count_ = 0;
  bool is_independent_ = true;
};

void set_at(DescriptorSpec& tensor, hipdnnBackendAttributeName_t name, std::size_t index, std::int64_t value) {
  const auto found = std::ranges::find(tensor.attributes, name, &AttributeSpec::name);
  std::memcpy(&found->bytes[index * sizeof value], &value, sizeof value);
}

}  // namespace

Extent extent_of(const Executable& executable) {
  Extent extent;
  std::set<std::int64_t> known = inputs_of(executable);
  for (const std::uint32_t operation : operations_of(executable)) {
    std::vector<double> read;
    double written = 1;
    // A product of a matrix with itself names it twice.
    for (const AttributeSpec& attribute : executable.descriptors[operation].attributes) {
      for (const std::uint32_t at : attribute.references) {
        const DescriptorSpec& tensor = executable.descriptors[at];
        if (!is_tensor(tensor) || !has_pointer(tensor)) continue;
        extent.elements += count_of(tensor);
        if (known.contains(uid_of(tensor))) {
          read.push_back(count_of(tensor));
        } else {
          written = std::max(written, count_of(tensor));
        }
      }
    }
    for (const std::uint32_t at : tensors_of(executable, operation)) known.insert(uid_of(executable.descriptors[at]));
    std::ranges::sort(read, std::greater<>());
    if (read.empty()) continue;
    const bool has_sums = executable.descriptors[operation].type != HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
    const double product = read.size() == 1 ? read[0] / written : std::sqrt(read[0] * read[1] / written);
    const double sum = has_sums ? std::max(1.0, product) : 1.0;
    extent.longest_sum = std::max(extent.longest_sum, sum);
    extent.multiplications += sum * written;
  }
  return extent;
}

Excerpt excerpt_of(const Executable& executable, double most_work) {
  constexpr double work_of_element = 16;
  const Extent extent = extent_of(executable);
  const double work = extent.multiplications + work_of_element * extent.elements;
  Excerpt excerpt{executable, {}};
  if (work <= most_work) return excerpt;
  const Entries entries(executable);
  if (entries.count() == 0) return excerpt;
  const auto taken = std::max<std::int64_t>(2, static_cast<std::int64_t>(static_cast<double>(entries.count()) * most_work / work));
  for (const std::uint32_t at : entries.apart()) {
    DescriptorSpec& tensor = excerpt.executable.descriptors[at];
    const std::int64_t own = entry_extent(tensor, entries.axis()), apart = strides_of(tensor)[entries.axis()];
    const std::size_t element = element_bits(dtype_of(tensor)).value() / 8;
    std::vector<Piece>& pieces = excerpt.pieces[uid_of(tensor)];
    for (std::int64_t i = 0; i < taken; ++i) {
      const std::int64_t entry = i * (entries.count() - 1) / (taken - 1);
      pieces.push_back({static_cast<std::size_t>(entry * apart) * element, static_cast<std::size_t>(own) * element});
    }
    set_at(tensor, HIPDNN_ATTR_TENSOR_DIMENSIONS, entries.axis(), taken);
    set_at(tensor, HIPDNN_ATTR_TENSOR_STRIDES, entries.axis(), own);
    for (Operand& operand : excerpt.executable.operands) {
      if (operand.uid == uid_of(tensor)) operand.extent_bytes = static_cast<std::uint64_t>(taken * own) * element;
    }
  }
  return excerpt;
}

}  // namespace hipdnn_rt
