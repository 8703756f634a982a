// Combination of partial reductions of f32, f64 or i64 elements; floats are combined in double.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels_tile.h"

namespace hipdnn_port {

/// Bytes that `count` accumulators take, a multiple of a cache line.
constexpr std::int64_t accumulator_bytes(std::int64_t count) { return (count * 8 + 63) / 64 * 64; }

/// How one reduction combines its partial results. Accumulators are 8 bytes each in caller's memory.
class Accumulator {
 public:
  Accumulator(Fold fold, Reg reg) : fold_(fold), reg_(reg) {}
  void reset(std::byte* accumulators, std::int64_t count) const;
  /// Adds `count` partial results of the register type.
  void add(std::byte* accumulators, const std::byte* partial, std::int64_t count) const;
  /// Adds other accumulators.
  void merge(std::byte* accumulators, const std::byte* others, std::int64_t count) const;
  /// Writes the totals in the register type.
  void finish(const std::byte* accumulators, std::byte* result, std::int64_t count) const;

 private:
  Fold fold_;
  Reg reg_;
};

}  // namespace hipdnn_port
