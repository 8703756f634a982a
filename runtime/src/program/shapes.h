// What a graph is without the sizes of its operands, and those: graphs that differ in sizes alone may share a plan that takes others.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "program/program.h"

namespace hipdnn_rt {

/// An operand's dims and strides, as many of each.
struct Shape {
  std::int64_t uid = 0;
  std::vector<std::int64_t> dims, strides;

  friend auto operator<=>(const Shape&, const Shape&) = default;
};

struct Shapes {
  /// Equal for executables that differ in dims and strides alone, and in no dim between one and more: one is what tells which dims a reduction
  /// sums over, and which operands broadcast.
  std::string structure;
  /// Of the operands whose shapes may be others, in the order of their descriptors.
  std::vector<Shape> operands;
};

/// `fixed` are uids of operands, such as weights, whose shapes belong to the structure.
Shapes shapes_of(const Executable& executable, const std::set<std::int64_t>& fixed);

/// Whether a plan for `large` may run at `small`, of the same structure: no dim is larger, and dims lie in memory in the same order. hipDNN's override
/// shapes ask for that (its RFC 8).
bool fits(const std::vector<Shape>& small, const std::vector<Shape>& large);

/// Those of `small` that differ from `large`.
std::vector<Shape> overrides_of(const std::vector<Shape>& small, const std::vector<Shape>& large);

}  // namespace hipdnn_rt
