#include "image.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace hipdnn_port::kernels {
namespace {

using nlohmann::json;

constexpr std::size_t max_tensors = 1024;
constexpr std::int64_t max_int64 = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t max_magnitude = std::int64_t{1} << 62;

std::optional<std::int64_t> as_int64(const json& value) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(max_int64)) return std::nullopt;
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return std::nullopt;
}

std::int64_t read_integer(const json& value, std::string_view what, std::int64_t least, std::int64_t greatest) {
  const auto number = as_int64(value);
  if (!number || *number < least || *number > greatest) {
    std::ostringstream expected;
    expected << "an integer from " << least << " to " << greatest;
    refuse_value(what, expected.str(), value);
  }
  return *number;
}

const json& member(const json& object, const char* name, std::string_view what) {
  if (!object.is_object() || !object.contains(name)) refuse(what, ".", name, ": missing");
  return object[name];
}

// The text of a message is made where something is wrong: making it takes longer than reading.
Dims read_dims(const json& value, const std::string& what, const char* field) {
  if (!value.is_array() || value.size() > max_rank) refuse_value(what + field, "a list of at most 32 integers", value);
  Dims dims;
  for (const json& element : value) {
    const auto number = as_int64(element);
    dims.push_back(number && *number >= 0 ? *number : read_integer(element, what + field, 0, max_int64));
  }
  return dims;
}

/// Refuses a tensor whose count of elements or extent in bytes does not fit.
void check_size(const Tensor& tensor, const std::string& what) {
  std::int64_t elements = 1;
  std::int64_t extent = 1;
  bool overflows = false;
  for (std::size_t d = 0; d < tensor.rank(); ++d) {
    const std::int64_t dim = std::max<std::int64_t>(tensor.dims[d], 1);
    std::int64_t step = 0;
    overflows |= __builtin_mul_overflow(elements, dim, &elements);
    overflows |= __builtin_mul_overflow(dim - 1, tensor.strides[d], &step) || __builtin_add_overflow(extent, step, &extent);
  }
  if (overflows || __builtin_mul_overflow(extent, tensor.bytes(), &extent)) refuse(what, ": size overflows 64 bits");
}

Tensor read_tensor(const json& value, const std::string& what) {
  Tensor tensor;
  const json& role = member(value, "role", what);
  if (role != "in" && role != "out") refuse_value(what + ".role", "\"in\" or \"out\"", role);
  tensor.is_output = role == "out";
  const json& dtype = member(value, "dtype", what);
  const auto known = find_dtype(dtype);
  tensor.dtype = known ? *known : read_dtype(dtype, what + ".dtype");
  tensor.dims = read_dims(member(value, "dims", what), what, ".dims");
  tensor.strides = read_dims(member(value, "strides", what), what, ".strides");
  if (tensor.strides.size() != tensor.rank()) refuse(what, ": ", tensor.rank(), " dims but ", tensor.strides.size(), " strides");
  const bool is_empty = std::ranges::find(tensor.dims, 0) != tensor.dims.end();
  for (std::size_t d = 0; tensor.is_output && !is_empty && d < tensor.rank(); ++d) {
    if (tensor.dims[d] > 1 && tensor.strides[d] == 0) refuse(what, ".strides: an output does not broadcast");
  }
  check_size(tensor, what);
  return tensor;
}

}  // namespace

std::int64_t product(std::span<const std::int64_t> dims) {
  std::int64_t result = 1;
  for (const std::int64_t dim : dims) result *= dim;
  return result;
}

bool Tensor::is_packed() const {
  if (elements() == 0) return true;
  std::int64_t wanted = 1;
  for (std::size_t d = rank(); d-- > 0; wanted *= dims[d]) {
    if (dims[d] != 1 && strides[d] != wanted) return false;
  }
  return true;
}

std::int64_t Tensor::elements() const { return product(dims); }

std::string show(const Dims& dims) {
  std::ostringstream stream;
  stream << "[";
  for (std::size_t d = 0; d < dims.size(); ++d) stream << (d == 0 ? "" : ", ") << dims[d];
  stream << "]";
  return stream.str();
}

void refuse_value(std::string_view what, std::string_view expected, const json& value) {
  std::string got = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (got.size() > 40) got = got.substr(0, 40) + "...";
  refuse(what, ": expected ", expected, ", got ", got);
}

double read_real(const json& value, std::string_view what) {
  if (value.is_number()) return value.get<double>();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  refuse_value(what, "a number, \"inf\", \"-inf\" or \"nan\"", value);
}

std::optional<DType> find_dtype(const json& value) {
  for (std::size_t i = 0; value.is_string() && i < dtypes.size(); ++i) {
    if (value.get_ref<const std::string&>() == dtypes[i].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

DType read_dtype(const json& value, std::string_view what) {
  if (const auto dtype = find_dtype(value)) return *dtype;
  refuse_value(what, "an element type", value);
}

Attributes::Attributes() : Attributes(json::object()) {}

Attributes::Attributes(json values) : values_(std::make_shared<const json>(std::move(values))) {}

bool Attributes::has(std::string_view name) const { return values_->contains(name); }

void Attributes::expect_only(std::initializer_list<std::string_view> known) const {
  for (const auto& [name, value] : values_->items()) {
    if (std::ranges::find(known, std::string_view(name)) == known.end()) refuse("attributes.", name, ": unknown to this function");
  }
}

const json& Attributes::value(std::string_view name) const {
  const auto found = values_->find(name);
  if (found == values_->end()) refuse("attributes.", name, ": missing");
  return *found;
}

std::int64_t Attributes::integer(std::string_view name, std::int64_t least, std::int64_t greatest) const {
  return read_integer(value(name), "attributes." + std::string(name), least, greatest);
}

std::size_t Attributes::axis(std::string_view name, std::size_t rank) const {
  if (rank == 0) refuse("attributes.", name, ": a tensor without dims has no axis");
  return static_cast<std::size_t>(integer(name, 0, static_cast<std::int64_t>(rank) - 1));
}

bool Attributes::boolean(std::string_view name) const {
  const json& given = value(name);
  if (!given.is_boolean()) refuse_value("attributes." + std::string(name), "true or false", given);
  return given.get<bool>();
}

double Attributes::real(std::string_view name) const { return read_real(value(name), "attributes." + std::string(name)); }

std::size_t Attributes::choice(std::string_view name, std::initializer_list<std::string_view> choices) const {
  const json& given = value(name);
  std::string expected = "one of";
  for (const std::string_view& choice : choices) {
    if (given.is_string() && given.get_ref<const std::string&>() == choice) return static_cast<std::size_t>(&choice - choices.begin());
    expected += " \"" + std::string(choice) + "\"";
  }
  refuse_value("attributes." + std::string(name), expected, given);
}

Dims Attributes::integers(std::string_view name, std::size_t count) const {
  const std::string what = "attributes." + std::string(name);
  const json& given = value(name);
  if (!given.is_array() || given.size() != count) refuse_value(what, "a list of " + std::to_string(count) + " integers", given);
  Dims numbers;
  for (const json& element : given) numbers.push_back(read_integer(element, what, -max_magnitude, max_magnitude));
  return numbers;
}

std::vector<double> Attributes::reals(std::string_view name, std::size_t count) const {
  const std::string what = "attributes." + std::string(name);
  const json& given = value(name);
  if (!given.is_array() || given.size() != count) refuse_value(what, "a list of " + std::to_string(count) + " numbers", given);
  std::vector<double> numbers;
  for (const json& element : given) numbers.push_back(read_real(element, what));
  return numbers;
}

Image Image::parse(std::string_view text) {
  json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) refuse("the image is not a JSON object; this library takes kernels as text, not as code");
  Image image;
  const json& function = member(root, "function", "image");
  if (!function.is_string()) refuse_value("image.function", "a string", function);
  image.function = function.get<std::string>();
  const json& tensors = member(root, "tensors", "image");
  if (!tensors.is_array() || tensors.size() > max_tensors) refuse_value("image.tensors", "a list of at most 1024 tensors", tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string what = "tensors[" + std::to_string(i) + "]";
    image.tensors.push_back(read_tensor(tensors[i], what));
    if (image.tensors.back().is_output) continue;
    if (image.inputs != i) refuse(what, ".role: ins come before outs");
    ++image.inputs;
  }
  if (const json& attributes = member(root, "attributes", "image"); !attributes.is_object()) refuse_value("image.attributes", "an object", attributes);
  image.attributes = Attributes(std::move(root["attributes"]));
  return image;
}

void Image::expect_counts(std::size_t in, std::size_t out) const {
  if (inputs == in && outputs() == out) return;
  refuse(function, ": expected ", in, " ins and ", out, " outs, got ", inputs, " and ", outputs());
}

void Image::expect_same_dtype(std::size_t a, std::size_t b) const {
  if (tensors[a].dtype == tensors[b].dtype) return;
  refuse("tensors[", b, "].dtype: expected ", info_of(tensors[a].dtype).name, " as tensors[", a, "], got ", info_of(tensors[b].dtype).name);
}

void Image::expect_dims(std::size_t tensor, const Dims& dims) const {
  if (tensors[tensor].dims != dims) refuse("tensors[", tensor, "].dims: expected ", show(dims), ", got ", show(tensors[tensor].dims));
}

}  // namespace hipdnn_port::kernels
