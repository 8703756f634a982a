// Reads one kernel of a program: its tensors as operands, the rest as the image for the port.
#include <limits>

#include "hipdnn_rt/checked.h"
#include "hipdnn_rt/error.h"
#include "hipdnn_rt/json_field.h"
#include "hipdnn_rt/program.h"

namespace hipdnn_rt {
namespace {

constexpr std::size_t kTensorLimit = 1'024;
constexpr std::size_t kRankLimit = 64;
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
  for (std::size_t i = 0; operand.is_output && i < dims.size(); ++i) {
    if (dims[i] > 1 && strides[i] == 0) field["strides"].at(i).fail("a stride of at least 1: an output does not broadcast");
  }
  return operand;
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
  kernel.image = nlohmann::json{{"function", kernel.function}, {"tensors", tensors.json()}, {"attributes", attributes.json()}}.dump();
  return kernel;
}

}  // namespace hipdnn_rt
