#include "engine_plugin/tensor_value.h"

#include <limits>
#include <variant>

#include "graph_tables.h"
#include "program/narrow_floats.h"

namespace hipdnn_plugin {
namespace {

/// A byte is an element as it lies in memory: hipDNN writes all types of 8 bits as one.
using Number = std::variant<double, std::int64_t, std::byte>;

[[noreturn]] void refuse_number(const std::string& reason) { refuse_graph("a tensor's value " + reason); }

template <typename T>
std::vector<std::byte> bytes_of(T value) {
  std::vector<std::byte> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

Number read_number(const FlatTable& tensor, TensorValue kind) {
  constexpr int slot = TensorSlot::value + 1;
  const auto read = [&]<typename T>(T) {
    const auto value = tensor.structure<T>(slot);
    if (!value) tensor.refuse("a value's type has no value");
    return *value;
  };
  switch (kind) {
    case TensorValue::Float32Value:
    case TensorValue::Float16Value:
    case TensorValue::BFloat16Value: return static_cast<double>(read(float{}));
    case TensorValue::Float64Value: return read(double{});
    case TensorValue::Int32Value: return static_cast<std::int64_t>(read(std::int32_t{}));
    case TensorValue::Int64Value: return read(std::int64_t{});
    case TensorValue::BoolValue: return static_cast<std::int64_t>(read(std::uint8_t{}) != 0);
    case TensorValue::Float8Value: return std::byte(read(std::uint8_t{}));
    default: refuse_number("is of a kind that is not known");
  }
}

double real(const Number& number) {
  if (const auto* integer = std::get_if<std::int64_t>(&number)) return static_cast<double>(*integer);
  if (const auto* value = std::get_if<double>(&number)) return *value;
  refuse_number("is a byte, its type has more");
}

template <typename T>
std::vector<std::byte> integer(const Number& number) {
  const auto* value = std::get_if<std::int64_t>(&number);
  if (value == nullptr || *value < std::numeric_limits<T>::min() || *value > std::numeric_limits<T>::max()) refuse_number("is none of its type's integers");
  return bytes_of(static_cast<T>(*value));
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
    case HIPDNN_DATA_FP4_E2M1:
    case HIPDNN_DATA_FP6_E2M3_EXT:
    case HIPDNN_DATA_FP6_E3M2_EXT:
    case HIPDNN_DATA_INT4: return 0;
    default: return 1;
  }
}

std::optional<std::vector<std::byte>> read_value(const FlatTable& tensor, hipdnnDataType_t type) {
  const auto kind = static_cast<TensorValue>(tensor.scalar<std::uint8_t>(TensorSlot::value, 0));
  if (kind == TensorValue::none) return std::nullopt;
  const Number number = read_number(tensor, kind);
  switch (type) {
    case HIPDNN_DATA_FLOAT: return bytes_of(static_cast<float>(real(number)));
    case HIPDNN_DATA_DOUBLE: return bytes_of(real(number));
    case HIPDNN_DATA_HALF: return bytes_of(hipdnn_rt::to_half(static_cast<float>(real(number))));
    case HIPDNN_DATA_BFLOAT16: return bytes_of(hipdnn_rt::to_bfloat16(static_cast<float>(real(number))));
    case HIPDNN_DATA_INT64: return integer<std::int64_t>(number);
    case HIPDNN_DATA_INT32: return integer<std::int32_t>(number);
    case HIPDNN_DATA_BOOLEAN: return bytes_of(static_cast<std::uint8_t>(real(number) != 0));
    case HIPDNN_DATA_INT8:
    case HIPDNN_DATA_UINT8:
    case HIPDNN_DATA_FP8_E4M3:
    case HIPDNN_DATA_FP8_E5M2:
    case HIPDNN_DATA_FP8_E8M0:
    case HIPDNN_DATA_FP8_E4M3_FNUZ:
    case HIPDNN_DATA_FP8_E5M2_FNUZ:
      if (const auto* byte = std::get_if<std::byte>(&number)) return std::vector{*byte};
      refuse_number("is no byte, its type has 8 bits");
    default: refuse_number("is of a type that has no values");
  }
}

}  // namespace hipdnn_plugin
