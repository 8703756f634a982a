// Combination of partial reductions.
#include "reduction_accumulator.h"

#include <limits>

namespace hipdnn_port {
namespace {

template <class T>
T neutral(Fold fold) {
  using Limits = std::numeric_limits<T>;
  switch (fold) {
    case Fold::add: return T{0};
    case Fold::mul: return T{1};
    case Fold::min: return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case Fold::max: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  return T{0};
}

template <class T>
T combined(Fold fold, T a, T b) {
  switch (fold) {
    case Fold::add: return a + b;
    case Fold::mul: return a * b;
    case Fold::min: return b < a || b != b ? b : a;
    case Fold::max: return b > a || b != b ? b : a;
  }
  return a;
}

template <class T, class From>
void combine_all(Fold fold, std::byte* accumulators, const std::byte* from, std::int64_t count) {
  auto* total = reinterpret_cast<T*>(accumulators);
  const auto* part = reinterpret_cast<const From*>(from);
  for (std::int64_t i = 0; i < count; ++i) total[i] = combined<T>(fold, total[i], static_cast<T>(part[i]));
}

template <class T>
void fill(Fold fold, std::byte* accumulators, std::int64_t count) {
  auto* total = reinterpret_cast<T*>(accumulators);
  for (std::int64_t i = 0; i < count; ++i) total[i] = neutral<T>(fold);
}

template <class T, class To>
void write(const std::byte* accumulators, std::byte* result, std::int64_t count) {
  const auto* total = reinterpret_cast<const T*>(accumulators);
  auto* out = reinterpret_cast<To*>(result);
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<To>(total[i]);
}

}  // namespace

void Accumulator::reset(std::byte* accumulators, std::int64_t count) const {
  if (reg_ == Reg::i64) return fill<std::int64_t>(fold_, accumulators, count);
  fill<double>(fold_, accumulators, count);
}

void Accumulator::add(std::byte* accumulators, const std::byte* partial, std::int64_t count) const {
  switch (reg_) {
    case Reg::f32: return combine_all<double, float>(fold_, accumulators, partial, count);
    case Reg::f64: return combine_all<double, double>(fold_, accumulators, partial, count);
    default: return combine_all<std::int64_t, std::int64_t>(fold_, accumulators, partial, count);
  }
}

void Accumulator::merge(std::byte* accumulators, const std::byte* others, std::int64_t count) const {
  if (reg_ == Reg::i64) return combine_all<std::int64_t, std::int64_t>(fold_, accumulators, others, count);
  combine_all<double, double>(fold_, accumulators, others, count);
}

void Accumulator::finish(const std::byte* accumulators, std::byte* result, std::int64_t count) const {
  switch (reg_) {
    case Reg::f32: return write<double, float>(accumulators, result, count);
    case Reg::f64: return write<double, double>(accumulators, result, count);
    default: return write<std::int64_t, std::int64_t>(accumulators, result, count);
  }
}

}  // namespace hipdnn_port
