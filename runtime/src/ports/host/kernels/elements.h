// Elements of memory as values to compute with, and the operations that fold two of them into one.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "image.h"

namespace hipdnn_port::kernels {

namespace scalar {
#include "../engines/kernels_math.inc"
}  // namespace scalar

struct Half { std::uint16_t bits; };
struct Bfloat { std::uint16_t bits; };
template <class Format> struct Float8 { std::uint8_t bits; };
struct Boolean { std::uint8_t byte; };

/// How an element is computed with: narrower floats as float, booleans as 0 and 1.
template <class T> struct Element {
  using Value = T;
  static Value load(T x) { return x; }
  static T store(Value x) { return x; }
};
template <> struct Element<Half> {
  using Value = float;
  static float load(Half x) { return scalar::half_to_float(x.bits); }
  static Half store(float x) { return {scalar::float_to_half(x)}; }
};
template <> struct Element<Bfloat> {
  using Value = float;
  static float load(Bfloat x) { return scalar::bfloat_to_float(x.bits); }
  static Bfloat store(float x) { return {scalar::float_to_bfloat(x)}; }
};
template <class Format> struct Element<Float8<Format>> {
  using Value = float;
  static float load(Float8<Format> x) { return scalar::float8_to_float<Format>(x.bits); }
  static Float8<Format> store(float x) { return {scalar::float_to_float8<Format>(x)}; }
};
template <> struct Element<Boolean> {
  using Value = std::uint8_t;
  static std::uint8_t load(Boolean x) { return x.byte != 0 ? 1 : 0; }
  static Boolean store(std::uint8_t x) { return {x}; }
};
template <class T> using ValueOf = typename Element<T>::Value;

/// Many values are added and multiplied in this type: float in double.
template <class T> using AccumulatorOf = std::conditional_t<std::is_same_v<T, float>, double, ValueOf<T>>;

/// Calls body(T{}) with the memory type of `dtype`.
template <class Body>
void for_dtype(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f32: body(float{}); break;
    case DType::f64: body(double{}); break;
    case DType::f16: body(Half{}); break;
    case DType::bf16: body(Bfloat{}); break;
    case DType::f8e4m3: body(Float8<scalar::E4m3>{}); break;
    case DType::f8e5m2: body(Float8<scalar::E5m2>{}); break;
    case DType::i8: body(std::int8_t{}); break;
    case DType::u8: body(std::uint8_t{}); break;
    case DType::i16: body(std::int16_t{}); break;
    case DType::u16: body(std::uint16_t{}); break;
    case DType::i32: body(std::int32_t{}); break;
    case DType::u32: body(std::uint32_t{}); break;
    case DType::i64: body(std::int64_t{}); break;
    case DType::u64: body(std::uint64_t{}); break;
    case DType::boolean: body(Boolean{}); break;
  }
}

template <class V> bool is_nan(V x) {
  if constexpr (std::is_floating_point_v<V>) return x != x;
  else return false;
}

/// Integers wrap: the detour through an unsigned type of at least 32 bits keeps that defined.
template <class V> using Wrapping = std::conditional_t<sizeof(V) == 8, std::uint64_t, std::uint32_t>;

struct Plus {
  template <class V> static V identity() { return V{0}; }
  template <class V> static V of(V a, V b) {
    if constexpr (std::is_floating_point_v<V>) return a + b;
    else return static_cast<V>(static_cast<Wrapping<V>>(a) + static_cast<Wrapping<V>>(b));
  }
};
struct Times {
  template <class V> static V identity() { return V{1}; }
  template <class V> static V of(V a, V b) {
    if constexpr (std::is_floating_point_v<V>) return a * b;
    else return static_cast<V>(static_cast<Wrapping<V>>(a) * static_cast<Wrapping<V>>(b));
  }
};
/// A NaN operand is the result.
struct Least {
  template <class V> static V identity() {
    return std::numeric_limits<V>::has_infinity ? std::numeric_limits<V>::infinity() : std::numeric_limits<V>::max();
  }
  template <class V> static V of(V a, V b) { return a < b || is_nan(a) ? a : b; }
};
struct Greatest {
  template <class V> static V identity() {
    return std::numeric_limits<V>::has_infinity ? static_cast<V>(-std::numeric_limits<V>::infinity()) : std::numeric_limits<V>::lowest();
  }
  template <class V> static V of(V a, V b) { return a > b || is_nan(a) ? a : b; }
};
struct Both {
  template <class V> static V identity() { return V{1}; }
  template <class V> static V of(V a, V b) { return static_cast<V>(a != 0 && b != 0); }
};
struct Either {
  template <class V> static V identity() { return V{0}; }
  template <class V> static V of(V a, V b) { return static_cast<V>(a != 0 || b != 0); }
};

/// An element read as double; grids and the like, whatever float type they have.
inline double read_real(const std::byte* base, DType dtype, std::int64_t at) {
  switch (dtype) {
    case DType::f32: return static_cast<double>(reinterpret_cast<const float*>(base)[at]);
    case DType::f16: return static_cast<double>(Element<Half>::load(reinterpret_cast<const Half*>(base)[at]));
    case DType::bf16: return static_cast<double>(Element<Bfloat>::load(reinterpret_cast<const Bfloat*>(base)[at]));
    default: return reinterpret_cast<const double*>(base)[at];
  }
}

/// A weighted sum as an element: integers toward zero within their range.
template <class T>
T from_real(double x) {
  using Value = ValueOf<T>;
  if constexpr (std::is_floating_point_v<Value>) {
    return Element<T>::store(static_cast<Value>(x));
  } else {
    // The greatest 64-bit values are no doubles: comparing with what they round to still keeps the conversion in range.
    if (!(x > static_cast<double>(std::numeric_limits<Value>::lowest()))) {
      return Element<T>::store(is_nan(x) ? Value{0} : std::numeric_limits<Value>::lowest());
    }
    if (x >= static_cast<double>(std::numeric_limits<Value>::max())) return Element<T>::store(std::numeric_limits<Value>::max());
    return Element<T>::store(static_cast<Value>(x));
  }
}

}  // namespace hipdnn_port::kernels
