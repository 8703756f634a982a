// Checks a kernel: its tensors as operands, the rest as the image for the port.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "program/checked.h"
#include "program/checks.h"

namespace hipdnn_rt {
namespace {

using Tensor = records::KernelTensor<Concrete>;

/// Bytes from a tensor's first element to the end of its last, 0 where it has none.
std::uint64_t extent_of(const Tensor& tensor, const Place& place) {
  std::optional<std::uint64_t> elements = 1;
  std::optional<std::uint64_t> count = 1;
  const bool is_empty = std::ranges::find(tensor.dims, 0) != tensor.dims.end();
  for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
    count = count ? checked_multiply(*count, static_cast<std::uint64_t>(is_empty ? 0 : tensor.dims[i])) : std::nullopt;
    const auto last = static_cast<std::uint64_t>(tensor.dims[i] == 0 ? 0 : tensor.dims[i] - 1);
    const auto step = checked_multiply(last, static_cast<std::uint64_t>(tensor.strides[i]));
    elements = elements && step ? checked_add(*elements, *step) : std::nullopt;
  }
  const auto bytes = elements ? checked_multiply(*elements, info_of(tensor.dtype).bytes) : std::nullopt;
  if (!bytes || *bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) place.fail("a tensor whose extent fits 63 bits", "more");
  if (!count || *count > kElementsLimit) place.fail("a tensor of at most 2^40 elements", "more");
  return is_empty ? 0 : *bytes;
}

Operand check_tensor(const Tensor& tensor, std::size_t position, const Place& place) {
  const Place strides(place, "strides");
  if (tensor.strides.size() != tensor.dims.size()) {
    strides.fail(std::to_string(tensor.dims.size()) + " strides, one for each dim", std::to_string(tensor.strides.size()));
  }
  const std::uint64_t extent = extent_of(tensor, place);
  const bool is_output = tensor.role == Role::out;
  // The strides of a tensor without elements are products with the dim that is 0.
  for (std::size_t i = 0; is_output && extent != 0 && i < tensor.dims.size(); ++i) {
    if (tensor.dims[i] > 1 && tensor.strides[i] == 0) {
      Place(strides, i).fail("a stride of at least 1: an output does not broadcast", "0");
    }
  }
  return {static_cast<std::int64_t>(position) + 1, is_output, extent, info_of(tensor.dtype).bytes};
}

std::array<std::uint32_t, 3> check_sizes(const std::vector<std::int64_t>& sizes, const Place& place) {
  if (sizes.size() != 3) place.fail("3 sizes: x, y, z", std::to_string(sizes.size()));
  return {static_cast<std::uint32_t>(sizes[0]), static_cast<std::uint32_t>(sizes[1]), static_cast<std::uint32_t>(sizes[2])};
}

std::string decode_base64(std::string_view text, const Place& place) {
  static constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text.substr(0, text.find('='))) {
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) place.fail("base64", std::string("'") + c + "'");
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) bytes.push_back(static_cast<char>(bits >> (count -= 8) & 0xFF));
  }
  return bytes;
}

/// Code for a GPU.
void check_code(records::Code<Concrete> code, Kernel& kernel, const Place& place) {
  kernel.symbol = std::move(code.function);
  kernel.grid = check_sizes(code.grid, Place(place, "grid"));
  kernel.block = check_sizes(code.block, Place(place, "block"));
  const Place arguments(place, "arguments");
  for (std::size_t i = 0; i < code.arguments.size(); ++i) {
    kernel.arguments.push_back(check_index(code.arguments[i], kernel.operands.size(), Place(arguments, i)));
  }
  kernel.waits_itself = code.waits;
  kernel.shared_bytes = static_cast<std::uint32_t>(code.shared_bytes);
  kernel.image = code.encoding == Encoding::text ? std::move(code.image) : decode_base64(code.image, Place(place, "image"));
}

std::string json_list(const std::vector<std::int64_t>& numbers) {
  std::string text = "[";
  for (const std::int64_t number : numbers) text.append(text.size() == 1 ? "" : ",").append(std::to_string(number));
  text += ']';
  return text;
}

std::string quoted(std::string_view text) { return std::string(1, '"').append(text).append(1, '"'); }

/// What the host library loads a module from; of other targets it is for profiles.
std::string description_of(const records::Kernel<Concrete>& record) {
  std::string tensors;
  for (const Tensor& tensor : record.tensors) {
    tensors += (tensors.empty() ? "" : ",");
    tensors += R"({"role":)" + quoted(text_of(tensor.role)) + R"(,"dtype":)" +
               quoted(info_of(tensor.dtype).name) + R"(,"dims":)" + json_list(tensor.dims) + R"(,"strides":)" + json_list(tensor.strides) + "}";
  }
  return R"({"function":)" + json_text(record.function) + R"(,"tensors":[)" + tensors + R"(],"attributes":)" + record.attributes + "}";
}

}  // namespace

Kernel check_kernel(records::Kernel<Concrete> record, const Place& place) {
  Kernel kernel;
  const Place tensors(place, "tensors");
  for (std::size_t i = 0; i < record.tensors.size(); ++i) {
    const Place tensor(tensors, i);
    kernel.operands.push_back(check_tensor(record.tensors[i], i, tensor));
    if (i > 0 && kernel.operands[i - 1].is_output && !kernel.operands[i].is_output) {
      Place(tensor, "role").fail("\"out\": ins come first", "\"in\"");
    }
  }
  if (record.code) {
    kernel.described = description_of(record);
    check_code(std::move(*record.code), kernel, Place(place, "code"));
  } else {
    kernel.symbol = record.function;
    for (std::size_t i = 0; i < record.tensors.size(); ++i) kernel.arguments.push_back(i);
    kernel.image = description_of(record);
  }
  kernel.name = std::move(record.name);
  kernel.summary = std::move(record.summary);
  kernel.function = std::move(record.function);
  return kernel;
}

}  // namespace hipdnn_rt
