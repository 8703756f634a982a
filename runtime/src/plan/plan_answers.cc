#include "plan/plan_answers.h"

#include <algorithm>
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
  /// Greatest distance over size of two answers of one plan that adds up in another order each time.
  double unsteadiness;
  double greatest;
};

constexpr Format no_format{0, 0, 0, 0, 0};
constexpr int kTf32MantissaBits = 10;
/// Elements of which one may lie on a step.
constexpr std::size_t kOneIn = 10'000;

constexpr Format format_of(hipdnnDataType_t dtype) {
  switch (dtype) {
    case HIPDNN_DATA_FLOAT: return {32, 23, 127, 5e-4, std::numeric_limits<float>::max()};
    case HIPDNN_DATA_DOUBLE: return {64, 52, 1023, 1e-10, std::numeric_limits<double>::max()};
    case HIPDNN_DATA_HALF: return {16, 10, 15, 1e-3, 65504};
    case HIPDNN_DATA_BFLOAT16: return {16, 7, 127, 5e-3, 3.38e38};
    default: return no_format;
  }
}

/// Of what is multiplied too, which is no type of answers that are compared as numbers.
constexpr Format filled_format_of(hipdnnDataType_t dtype) {
  switch (dtype) {
    case HIPDNN_DATA_FP8_E4M3: return {8, 3, 7, 0, 448};
    case HIPDNN_DATA_FP8_E5M2: return {8, 2, 15, 0, 57344};
    default: return format_of(dtype);
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

/// The bits of one word in each place of 64.
constexpr std::uint64_t repeated(std::uint64_t word, int bits) {
  std::uint64_t all = 0;
  for (int at = 0; at < 64; at += bits) all |= word << at;
  return all;
}

/// Exact, and without a table or a branch: results have millions of elements.
float half_value(std::uint16_t word) {
  constexpr std::uint32_t special = 0x7c00, mantissa = 0x3ff;
  const std::uint32_t magnitude = word & 0x7fffU, sign = static_cast<std::uint32_t>(word & 0x8000U) << 16U;
  // Of another bias: 2^112 brings numbers back, those without a leading one, too.
  const float number = std::bit_cast<float>(magnitude << 13U) * 0x1p112F;
  const std::uint32_t not_finite = 0x7f800000U | ((magnitude & mantissa) << 13U);
  const std::uint32_t bits = magnitude >= special ? not_finite : std::bit_cast<std::uint32_t>(number);
  return std::bit_cast<float>(bits | sign);
}

float bfloat16_value(std::uint16_t word) { return std::bit_cast<float>(static_cast<std::uint32_t>(word) << 16U); }

template <typename Word>
Word word_at(std::span<const std::byte> bytes, std::size_t index) {
  Word word{};
  std::memcpy(&word, &bytes[index * sizeof word], sizeof word);
  return word;
}

/// |a - r|, infinite where both are no numbers of one kind.
double distance(double a, double r, double greatest) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (std::isnan(a) || std::isnan(r)) return std::isnan(a) && std::isnan(r) ? 0 : infinity;
  if (a == r) return 0;
  // A reference of a wider type has what overflows in the answer's.
  if (std::isinf(a) && std::signbit(a) == std::signbit(r) && std::fabs(r) > 0.99 * greatest) return 0;
  return std::isinf(a) || std::isinf(r) ? infinity : std::fabs(a - r);
}

/// What nine of ten elements are at most. A few huge ones, as of exponentials, say nothing of the rest, and half of a ReLU's are zero.
template <typename T>
double scale_of(const Answer& reference, double greatest) {
  constexpr std::size_t most = 10'000;
  const std::size_t count = reference.bytes.size() / sizeof(T), step = count / most + 1;
  std::vector<double> sizes;
  for (std::size_t i = 0; i < count; i += step) {
    const double size = std::fabs(static_cast<double>(word_at<T>(reference.bytes, i)));
    if (std::isfinite(size)) sizes.push_back(std::min(size, greatest));
  }
  if (sizes.empty()) return 0;
  const auto place = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() * 9 / 10);
  std::ranges::nth_element(sizes, place);
  return *place > 0 ? *place : *std::ranges::max_element(sizes);
}

/// Both of f32 or both of f64. `untouched`: what memory full of bytes 0xff reads as.
template <typename T>
Comparison compare_values(const Answer& answer, const Answer& reference, double tolerance, double greatest, T untouched) {
  const std::size_t count = answer.bytes.size() / sizeof(T);
  const double scale = scale_of<T>(reference, greatest);
  std::size_t beyond = 0;
  bool is_written = true;
  double worst = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto a = static_cast<double>(word_at<T>(answer.bytes, i)), r = static_cast<double>(word_at<T>(reference.bytes, i));
    const double apart = distance(a, r, greatest);
    if (apart == 0) continue;
    is_written = is_written && std::memcmp(&answer.bytes[i * sizeof(T)], &untouched, sizeof(T)) != 0;
    const double share = apart / ((std::isfinite(r) ? std::fabs(r) : 0) + scale);
    beyond += share > tolerance ? 1 : 0;
    worst = std::max(worst, share);
  }
  return {is_written && beyond <= count / kOneIn, worst};
}

Comparison compare_bytes(const Answer& answer, const Answer& reference) {
  std::size_t beyond = 0;
  for (std::size_t i = 0; i < answer.bytes.size(); ++i) beyond += answer.bytes[i] != reference.bytes[i] ? 1 : 0;
  return {beyond <= answer.bytes.size() / kOneIn, beyond == 0 ? 0 : std::numeric_limits<double>::infinity()};
}

}  // namespace

void fill_operand(std::span<std::byte> memory, hipdnnDataType_t dtype, std::uint64_t seed) {
  const Format format = filled_format_of(dtype);
  if (format.bits == 0) {
    std::ranges::fill(memory, std::byte{0});
    return;
  }
  const std::uint64_t mantissa = (std::uint64_t{1} << format.mantissa_bits) - 1, sign = std::uint64_t{1} << (format.bits - 1);
  const std::uint64_t kept = repeated(mantissa | sign, format.bits);
  const std::uint64_t exponent = repeated(static_cast<std::uint64_t>(format.bias - 1) << format.mantissa_bits, format.bits);
  Bits bits(seed);
  for (std::size_t at = 0; at < memory.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t words = (bits.next() & kept) | exponent;
    std::memcpy(&memory[at], &words, std::min(sizeof words, memory.size() - at));
  }
}

hipdnnDataType_t widened(hipdnnDataType_t dtype) { return format_of(dtype).bits == 16 ? HIPDNN_DATA_FLOAT : dtype; }

std::size_t widened_bytes(hipdnnDataType_t dtype, std::size_t bytes) { return format_of(dtype).bits == 16 ? 2 * bytes : bytes; }

void widen(hipdnnDataType_t dtype, std::span<const std::byte> bytes, std::byte* to) {
  if (format_of(dtype).bits != 16) {
    std::ranges::copy(bytes, to);
    return;
  }
  const auto write = [&](auto value_of) {
    for (std::size_t i = 0; i < bytes.size() / sizeof(std::uint16_t); ++i) {
      const float value = value_of(word_at<std::uint16_t>(bytes, i));
      std::memcpy(to + i * sizeof value, &value, sizeof value);
    }
  };
  if (dtype == HIPDNN_DATA_HALF) {
    write(half_value);
  } else {
    write(bfloat16_value);
  }
}

Answer widened(const Answer& answer) {
  Answer wide{widened(answer.dtype), std::vector<std::byte>(widened_bytes(answer.dtype, answer.bytes.size()))};
  widen(answer.dtype, answer.bytes, wide.bytes.data());
  return wide;
}

double unit_roundoff(hipdnnDataType_t dtype, bool allows_tf32) {
  const Format format = format_of(dtype);
  if (format.bits == 0) return 0;
  return std::ldexp(1.0, -1 - (allows_tf32 && dtype == HIPDNN_DATA_FLOAT ? kTf32MantissaBits : format.mantissa_bits));
}

Comparison compare(const Answer& answer, const Answer& reference, double tolerance) {
  const Format format = format_of(answer.dtype);
  if (widened_bytes(answer.dtype, answer.bytes.size()) != reference.bytes.size()) return {false, std::numeric_limits<double>::infinity()};
  if (format.bits == 0) return compare_bytes(answer, reference);
  const Answer untouched = widened(Answer{answer.dtype, std::vector<std::byte>(static_cast<std::size_t>(format.bits) / 8, std::byte{0xff})});
  if (format.bits == 64) return compare_values(answer, reference, tolerance, format.greatest, word_at<double>(untouched.bytes, 0));
  const float word = word_at<float>(untouched.bytes, 0);
  return compare_values(format.bits == 16 ? widened(answer) : answer, reference, tolerance, format.greatest, word);
}

bool is_steady(const Answer& one, const Answer& other) {
  const Format format = format_of(one.dtype);
  if (format.bits == 0 || one.bytes == other.bytes) return true;
  const auto value_at = [&](const Answer& wide, std::size_t i) {
    return format.bits == 64 ? word_at<double>(wide.bytes, i) : static_cast<double>(word_at<float>(wide.bytes, i));
  };
  const Answer wide = widened(one), other_wide = widened(other);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < one.bytes.size() * 8 / static_cast<std::size_t>(format.bits); ++i) {
    const double a = value_at(wide, i), b = value_at(other_wide, i), apart = distance(a, b, std::numeric_limits<double>::infinity());
    if (std::isinf(apart)) return false;
    if (!std::isfinite(a)) continue;
    difference += apart * apart;
    size += a * a + b * b;
  }
  return difference <= format.unsteadiness * format.unsteadiness * size / 2;
}

bool is_steady(std::span<const Answer> one, std::span<const Answer> other) {
  return std::ranges::equal(one, other, [](const Answer& a, const Answer& b) { return is_steady(a, b); });
}

}  // namespace hipdnn_rt
