#include "hipdnn_rt/plan_answers.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace hipdnn_rt {
namespace {

/// How a type of floating-point numbers lies in its bits.
struct Format {
  int bits;
  int mantissa_bits;
  int bias;
  /// Greatest distance of two results over their size. Plans add up in orders and precisions of their own; f32 may be computed in TF32.
  double tolerance;
};

constexpr Format no_format{0, 0, 0, 0};

/// A plan that adds up in another order each time differs from itself by far less than from others.
constexpr double kShareOfOnePlan = 0.1;

constexpr Format format_of(hipdnnDataType_t dtype) {
  switch (dtype) {
    case HIPDNN_DATA_FLOAT: return {32, 23, 127, 5e-3};
    case HIPDNN_DATA_DOUBLE: return {64, 52, 1023, 1e-9};
    case HIPDNN_DATA_HALF: return {16, 10, 15, 1e-2};
    case HIPDNN_DATA_BFLOAT16: return {16, 7, 127, 5e-2};
    default: return no_format;
  }
}

/// A sequence of equally distributed bits, by splitmix64.
class Bits {
 public:
  explicit Bits(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

 private:
  std::uint64_t state_;
};

template <class Word>
void fill(std::span<std::byte> memory, const Format& format, Bits bits) {
  const Word mantissa = static_cast<Word>((Word{1} << format.mantissa_bits) - 1);
  const Word sign = static_cast<Word>(Word{1} << (format.bits - 1));
  const Word exponent = static_cast<Word>(static_cast<Word>(format.bias - 1) << format.mantissa_bits);
  for (std::size_t at = 0; at + sizeof(Word) <= memory.size(); at += sizeof(Word)) {
    const Word word = static_cast<Word>((bits.next() & (mantissa | sign)) | exponent);
    std::memcpy(&memory[at], &word, sizeof word);
  }
}

double compute_half(std::uint16_t word) {
  const int exponent = (word >> 10) & 0x1f;
  const int mantissa = word & 0x3ff;
  const double sign = (word & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1f) return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25));
}

/// Of all words: results have millions of elements.
double half_value(std::uint16_t word) {
  static const std::vector<double> values = [] {
    std::vector<double> made(std::size_t{1} << 16U);
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = compute_half(static_cast<std::uint16_t>(i));
    return made;
  }();
  return values[word];
}

double value_at(const Answer& answer, std::size_t index) {
  const auto read = [&]<class T>(T word) {
    std::memcpy(&word, &answer.bytes[index * sizeof word], sizeof word);
    return word;
  };
  switch (answer.dtype) {
    case HIPDNN_DATA_FLOAT: return static_cast<double>(read(float{}));
    case HIPDNN_DATA_DOUBLE: return read(double{});
    case HIPDNN_DATA_HALF: return half_value(read(std::uint16_t{}));
    default: return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(read(std::uint16_t{})) << 16U));
  }
}

}  // namespace

void fill_operand(std::span<std::byte> memory, hipdnnDataType_t dtype, std::uint64_t seed) {
  const Format format = format_of(dtype);
  if (format.bits == 16) fill<std::uint16_t>(memory, format, Bits(seed));
  if (format.bits == 32) fill<std::uint32_t>(memory, format, Bits(seed));
  if (format.bits == 64) fill<std::uint64_t>(memory, format, Bits(seed));
}

bool agree(const Answer& one, const Answer& other, Of of) {
  const Format format = format_of(one.dtype);
  if (format.bits == 0 || one.bytes == other.bytes) return true;
  const std::size_t count = one.bytes.size() * 8 / static_cast<std::size_t>(format.bits);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double a = value_at(one, i), b = value_at(other, i);
    if (std::isnan(a) != std::isnan(b)) return false;
    if (std::isnan(a)) continue;
    if (std::isinf(a) || std::isinf(b)) {
      if (a != b) return false;
      continue;
    }
    difference += (a - b) * (a - b);
    size += a * a + b * b;
  }
  const double tolerance = format.tolerance * (of == Of::one_plan ? kShareOfOnePlan : 1);
  return difference <= tolerance * tolerance * size / 2;
}

bool agree(std::span<const Answer> one, std::span<const Answer> other, Of of) {
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (!agree(one[i], other[i], of)) return false;
  }
  return true;
}

}  // namespace hipdnn_rt
