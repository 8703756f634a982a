// Queries on the operation graph.
#include "graph.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "names.h"
#include "spec.h"
#include "status.h"

namespace hipdnn_port {
namespace {

template <class T>
double load(const std::vector<std::byte>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return static_cast<double>(value);
}

double half_to_double(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const int fraction = bits & 0x3FF;
  double magnitude = 0;
  if (exponent == 0x1F) {
    magnitude = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(fraction + 0x400, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

std::uint16_t load_bits16(const std::vector<std::byte>& bytes) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes.data(), sizeof bits);
  return bits;
}

}  // namespace

std::size_t element_bytes(hipdnnDataType_t type) {
  switch (type) {
    case HIPDNN_DATA_DOUBLE:
    case HIPDNN_DATA_INT64: return 8;
    case HIPDNN_DATA_FLOAT:
    case HIPDNN_DATA_INT32: return 4;
    case HIPDNN_DATA_HALF:
    case HIPDNN_DATA_BFLOAT16: return 2;
    case HIPDNN_DATA_INT8:
    case HIPDNN_DATA_UINT8:
    case HIPDNN_DATA_BOOLEAN:
    case HIPDNN_DATA_FP8_E4M3:
    case HIPDNN_DATA_FP8_E5M2:
    case HIPDNN_DATA_FP8_E8M0:
    case HIPDNN_DATA_FP8_E4M3_FNUZ:
    case HIPDNN_DATA_FP8_E5M2_FNUZ: return 1;
    default: throw std::invalid_argument(text(data_type_name(type), " elements are smaller than a byte"));
  }
}

std::int64_t Tensor::element_count() const {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

double Tensor::scalar() const {
  const std::vector<std::byte>& bytes = value.value();
  switch (dtype) {
    case HIPDNN_DATA_FLOAT: return load<float>(bytes);
    case HIPDNN_DATA_DOUBLE: return load<double>(bytes);
    case HIPDNN_DATA_INT32: return load<std::int32_t>(bytes);
    case HIPDNN_DATA_INT64: return load<std::int64_t>(bytes);
    case HIPDNN_DATA_INT8: return load<std::int8_t>(bytes);
    case HIPDNN_DATA_UINT8: return load<std::uint8_t>(bytes);
    case HIPDNN_DATA_BOOLEAN: return load<std::uint8_t>(bytes) != 0 ? 1.0 : 0.0;
    case HIPDNN_DATA_HALF: return half_to_double(load_bits16(bytes));
    case HIPDNN_DATA_BFLOAT16: return std::bit_cast<float>(std::uint32_t{load_bits16(bytes)} << 16);
    default: throw std::invalid_argument(text("baked ", data_type_name(dtype), " values are not read by this library"));
  }
}

const std::vector<std::int64_t>& Node::ints(hipdnnBackendAttributeName_t attribute) const {
  const auto found = attributes.find(attribute);
  if (found == attributes.end()) throw std::out_of_range(text(attribute_name(attribute), " is not set"));
  return std::get<std::vector<std::int64_t>>(found->second);
}

std::int64_t Node::integer_or(hipdnnBackendAttributeName_t attribute, std::int64_t otherwise) const {
  return has(attribute) ? integer(attribute) : otherwise;
}

double Node::real_or(hipdnnBackendAttributeName_t attribute, double otherwise) const {
  const auto found = attributes.find(attribute);
  return found == attributes.end() ? otherwise : std::get<std::vector<double>>(found->second).at(0);
}

int Graph::producer(int t) const {
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (const auto& [name, indices] : nodes[n].tensors) {
      if (is_output_attribute(nodes[n].type, name) && std::ranges::find(indices, t) != indices.end()) return static_cast<int>(n);
    }
  }
  return -1;
}

std::vector<int> Graph::consumers(int t) const {
  std::vector<int> found;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const bool reads = std::ranges::any_of(nodes[n].tensors, [&](const auto& entry) {
      return !is_output_attribute(nodes[n].type, entry.first) && std::ranges::find(entry.second, t) != entry.second.end();
    });
    if (reads) found.push_back(static_cast<int>(n));
  }
  return found;
}

std::vector<std::int64_t> packed_strides(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& order) {
  std::vector<std::size_t> by_stride(dims.size());
  std::iota(by_stride.begin(), by_stride.end(), std::size_t{0});
  std::ranges::stable_sort(by_stride, std::ranges::greater(), [&](std::size_t d) { return order[d]; });
  std::vector<std::int64_t> strides(dims.size());
  std::int64_t extent = 1;
  for (auto d = by_stride.rbegin(); d != by_stride.rend(); ++d) {
    strides[*d] = extent;
    extent *= dims[*d];
  }
  return strides;
}

std::string describe(const Graph& graph) {
  if (!graph.name.empty()) return text("graph '", graph.name, "'");
  return text("a graph of ", graph.nodes.size(), graph.nodes.size() == 1 ? " operation" : " operations");
}

std::string describe(const Tensor& tensor) {
  const std::string label = tensor.name.empty() ? "" : text(" '", tensor.name, "'");
  return text(show(tensor.dims), " ", data_type_name(tensor.dtype), " uid ", tensor.uid, label);
}

bool is_output_attribute(hipdnnBackendDescriptorType_t type, hipdnnBackendAttributeName_t name) {
  const DescriptorSpec* spec = find_spec(type);
  const AttributeSpec* row = spec == nullptr ? nullptr : spec->find(name);
  return row != nullptr && row->refers == Refers::output;
}

}  // namespace hipdnn_port
