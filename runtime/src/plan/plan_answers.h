// What plans answer on operands of no meaning, and how far that may be from the right answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hipdnn_backend.h"

namespace hipdnn_rt {

/// Fill `memory` with numbers from half to one, of either sign, in types of 16 bits and more; zeros in others, where an index or a length has
/// to be a valid one.
void fill_operand(std::span<std::byte> memory, hipdnnDataType_t dtype, std::uint64_t seed);

/// Elements of one result.
struct Answer {
  hipdnnDataType_t dtype;
  std::vector<std::byte> bytes;
};

/// f32 for floats of 16 bits, any other type itself.
hipdnnDataType_t widened(hipdnnDataType_t dtype);
/// The bytes that elements take as `widened(dtype)`.
std::size_t widened_bytes(hipdnnDataType_t dtype, std::size_t bytes);
/// Write elements as `widened(dtype)`; exact.
void widen(hipdnnDataType_t dtype, std::span<const std::byte> bytes, std::byte* to);
Answer widened(const Answer& answer);

/// Half the distance of one from the next number, of TF32 for f32 where that is allowed; 0 of types that are no floats.
double unit_roundoff(hipdnnDataType_t dtype, bool allows_tf32);

/// How an answer compares with a reference of the type `widened` makes of it.
struct Comparison {
  bool is_right;
  /// The largest |a - r| over |r| plus what nine of ten |r| are at most. Infinity where only one of both is a NaN, or an infinity that is no overflow
  /// of the answer's type, or where elements that are no floats differ.
  double worst;
};

/// Right is an answer whose distance is at most `tolerance`, but for one element in ten thousand, which may lie on a step of a step function. An
/// element that is still full of bytes 0xff, though the reference is a number, is wrong.
Comparison compare(const Answer& answer, const Answer& reference, double tolerance);

/// Whether a plan answers the same twice but for the order in which it adds up: by the distance of all elements together over their size. Types
/// that are no floats always agree.
bool is_steady(const Answer& one, const Answer& other);
bool is_steady(std::span<const Answer> one, std::span<const Answer> other);

}  // namespace hipdnn_rt
