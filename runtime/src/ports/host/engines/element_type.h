// Types of tensor elements, as the host's tile programs and kernels know them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "hipdnn_backend.h"

namespace hipdnn_port {

enum class DType : std::uint8_t { f32, f64, f16, bf16, f8e4m3, f8e5m2, i8, u8, i16, u16, i32, u32, i64, u64, boolean };

struct DTypeInfo {
  std::string_view name;
  std::int64_t bytes;
};

inline constexpr std::array<DTypeInfo, 15> dtypes{{{"f32", 4}, {"f64", 8}, {"f16", 2}, {"bf16", 2}, {"f8e4m3", 1}, {"f8e5m2", 1}, {"i8", 1}, {"u8", 1},
                                                   {"i16", 2}, {"u16", 2}, {"i32", 4}, {"u32", 4}, {"i64", 8}, {"u64", 8}, {"bool", 1}}};

constexpr const DTypeInfo& info_of(DType dtype) { return dtypes[static_cast<std::size_t>(dtype)]; }
constexpr bool is_float(DType dtype) { return dtype <= DType::f8e5m2; }
constexpr bool is_integer(DType dtype) { return dtype >= DType::i8 && dtype <= DType::u64; }
constexpr bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
constexpr bool is_float8(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8e5m2; }
/// Whether it is a float that is held as f32 where it is computed with.
constexpr bool is_narrow(DType dtype) { return is_half(dtype) || is_float8(dtype); }
constexpr bool is_byte(DType dtype) { return dtype == DType::i8 || dtype == DType::u8; }

/// hipDNN's type, where elements of it are computed with.
constexpr std::optional<DType> dtype_of(hipdnnDataType_t type) {
  switch (type) {
    case HIPDNN_DATA_FLOAT: return DType::f32;
    case HIPDNN_DATA_DOUBLE: return DType::f64;
    case HIPDNN_DATA_HALF: return DType::f16;
    case HIPDNN_DATA_BFLOAT16: return DType::bf16;
    case HIPDNN_DATA_FP8_E4M3: return DType::f8e4m3;
    case HIPDNN_DATA_FP8_E5M2: return DType::f8e5m2;
    case HIPDNN_DATA_INT8: return DType::i8;
    case HIPDNN_DATA_UINT8: return DType::u8;
    case HIPDNN_DATA_INT32: return DType::i32;
    case HIPDNN_DATA_INT64: return DType::i64;
    case HIPDNN_DATA_BOOLEAN: return DType::boolean;
    default: return std::nullopt;
  }
}

}  // namespace hipdnn_port
