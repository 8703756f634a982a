// Reads one kernel of a program: its tensors as operands, the rest as the image for the port.
#include <algorithm>
#include <limits>

#include "device/error.h"
#include "program/checked.h"
#include "program/json_field.h"
#include "program/program.h"

namespace hipdnn_rt {
namespace {

constexpr std::size_t kTensorLimit = 1'024;
constexpr std::size_t kRankLimit = 64;
constexpr std::int64_t kBlockLimit = 1'024;
constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

bool is_output(const Field& role) {
  if (role.text() == "out") return true;
  if (role.text() != "in") role.fail("\"in\" or \"out\"");
  return false;
}

/// Bytes from a tensor's first element to the end of its last, 0 where it has none.
std::uint64_t extent_of(const Field& field, const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& strides,
                        std::uint64_t element_bytes) {
  std::optional<std::uint64_t> elements = 1;
  bool is_empty = false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    is_empty |= dims[i] == 0;
    const auto last = static_cast<std::uint64_t>(dims[i] == 0 ? 0 : dims[i] - 1);
    const auto step = checked_multiply(last, static_cast<std::uint64_t>(strides[i]));
    elements = elements && step ? checked_add(*elements, *step) : std::nullopt;
  }
  const auto bytes = elements ? checked_multiply(*elements, element_bytes) : std::nullopt;
  if (!bytes || *bytes > static_cast<std::uint64_t>(kInt64Max)) field.fail("a tensor whose extent fits 63 bits");
  return is_empty ? 0 : *bytes;
}

Operand read_tensor(const Field& field, std::int64_t position) {
  const Field dtype_field = field["dtype"];
  const std::optional<DType> dtype = dtype_from_name(dtype_field.text());
  if (!dtype) dtype_field.fail("an element type of the format");
  const std::uint64_t element_bytes = info_of(*dtype).bytes;
  const std::vector<std::int64_t> dims = field["dims"].integers(kRankLimit, 0, kInt64Max);
  const std::vector<std::int64_t> strides = field["strides"].integers(kRankLimit, 0, kInt64Max);
  if (strides.size() != dims.size()) field["strides"].fail(std::to_string(dims.size()) + " strides, one for each dim");
  Operand operand{position, is_output(field["role"]), extent_of(field, dims, strides, element_bytes), element_bytes};
  const bool is_empty = std::ranges::find(dims, 0) != dims.end();  // its strides are products with the dim that is 0
  for (std::size_t i = 0; operand.is_output && !is_empty && i < dims.size(); ++i) {
    if (dims[i] > 1 && strides[i] == 0) field["strides"].at(i).fail("a stride of at least 1: an output does not broadcast");
  }
  return operand;
}

std::array<std::uint32_t, 3> read_sizes(const Field& field, std::int64_t minimum, std::int64_t maximum) {
  const std::vector<std::int64_t> sizes = field.integers(3, minimum, maximum);
  if (sizes.size() != 3) field.fail("3 sizes: x, y, z");
  return {static_cast<std::uint32_t>(sizes[0]), static_cast<std::uint32_t>(sizes[1]), static_cast<std::uint32_t>(sizes[2])};
}

std::string decode_base64(const Field& field) {
  static constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  const std::string& text = field.text();
  for (const char c : std::string_view(text).substr(0, text.find('='))) {
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) field.fail("base64");
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) bytes.push_back(static_cast<char>(bits >> (count -= 8) & 0xFF));
  }
  return bytes;
}

/// Code for a GPU.
void read_code(const Field& field, Kernel& kernel) {
  kernel.symbol = field["function"].text();
  kernel.grid = read_sizes(field["grid"], 0, std::numeric_limits<std::int32_t>::max());
  kernel.block = read_sizes(field["block"], 1, kBlockLimit);
  for (const std::int64_t position : field["arguments"].integers(kTensorLimit, 0, static_cast<std::int64_t>(kernel.operands.size()) - 1)) {
    kernel.arguments.push_back(static_cast<std::size_t>(position));
  }
  if (const auto waits = field.find("waits")) kernel.waits_itself = waits->boolean();
  const Field encoding = field["encoding"];
  if (encoding.text() != "text" && encoding.text() != "base64") encoding.fail("\"text\" or \"base64\"");
  kernel.image = encoding.text() == "text" ? field["image"].text() : decode_base64(field["image"]);
}

}  // namespace

Kernel parse_kernel(const Field& field) {
  Kernel kernel;
  kernel.name = field["name"].text();
  if (const auto summary = field.find("summary")) kernel.summary = summary->text();
  kernel.function = field["function"].text();
  const Field tensors = field["tensors"];
  const std::size_t count = tensors.array_size(kTensorLimit);
  for (std::size_t i = 0; i < count; ++i) {
    kernel.operands.push_back(read_tensor(tensors.at(i), static_cast<std::int64_t>(i) + 1));
    if (i > 0 && kernel.operands[i - 1].is_output && !kernel.operands[i].is_output) tensors.at(i)["role"].fail("\"out\": ins come first");
  }
  const Field attributes = field["attributes"];
  if (!attributes.json().is_object()) attributes.fail("an object");
  if (const auto code = field.find("code")) {
    read_code(*code, kernel);
    return kernel;
  }
  kernel.symbol = kernel.function;
  for (std::size_t i = 0; i < count; ++i) kernel.arguments.push_back(i);
  kernel.image = nlohmann::json{{"function", kernel.function}, {"tensors", tensors.json()}, {"attributes", attributes.json()}}.dump();
  return kernel;
}

}  // namespace hipdnn_rt
