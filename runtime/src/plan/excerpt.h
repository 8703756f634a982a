// The part of a large graph's results that is enough to tell whether a plan is right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "program/program.h"

namespace hipdnn_rt {

/// Adjacent bytes of a tensor.
struct Piece {
  std::size_t offset;
  std::size_t bytes;
};

/// Of operands by uid; those that are not in it are whole.
using Pieces = std::map<std::int64_t, std::vector<Piece>>;

/// A graph of which only some entries along one dim, the first that has more than one, are computed, and where those lie in the memory of the whole one.
struct Excerpt {
  /// Its operands hold their pieces, one behind the other.
  Executable executable;
  Pieces pieces;
};

/// The graph itself where it is small, or where entries of that dim are not independent of each other; else the first entry, the last and
/// as many evenly between them as `most_work` allows, but at least these two. Work is multiplications, with elements of tensors counted as some.
Excerpt excerpt_of(const Executable& executable, double most_work);

/// The longest sum of a graph's operations, and the multiplications of all: of a product of m x k and k x n, k = sqrt(mk * kn / mn). Windows and norms
/// come near enough, since the square root is taken once more; a reduction's is what it has more than its result.
struct Extent {
  double longest_sum = 1;
  double multiplications = 0;
  double elements = 0;
};
Extent extent_of(const Executable& executable);

}  // namespace hipdnn_rt
