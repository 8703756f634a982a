// Element types of a program's inputs, outputs and stored tensors.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hipdnn_rt {

enum class DType : std::uint8_t { f32, f64, f16, bf16, f8e4m3, f8e5m2, i8, u8, i16, u16, i32, u32, i64, u64, boolean };

struct DTypeInfo {
  DType dtype;
  /// As in a program.
  std::string_view name;
  /// As in a safetensors header.
  std::string_view safetensors;
  std::uint64_t bytes;
};

inline constexpr std::array<DTypeInfo, 15> kDTypes{{
    {DType::f32, "f32", "F32", 4},
    {DType::f64, "f64", "F64", 8},
    {DType::f16, "f16", "F16", 2},
    {DType::bf16, "bf16", "BF16", 2},
    {DType::f8e4m3, "f8e4m3", "F8_E4M3", 1},
    {DType::f8e5m2, "f8e5m2", "F8_E5M2", 1},
    {DType::i8, "i8", "I8", 1},
    {DType::u8, "u8", "U8", 1},
    {DType::i16, "i16", "I16", 2},
    {DType::u16, "u16", "U16", 2},
    {DType::i32, "i32", "I32", 4},
    {DType::u32, "u32", "U32", 4},
    {DType::i64, "i64", "I64", 8},
    {DType::u64, "u64", "U64", 8},
    {DType::boolean, "bool", "BOOL", 1},
}};

constexpr const DTypeInfo& info_of(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

constexpr std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeInfo& row : kDTypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

constexpr std::optional<DType> dtype_from_safetensors(std::string_view name) {
  for (const DTypeInfo& row : kDTypes) {
    if (row.safetensors == name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace hipdnn_rt
