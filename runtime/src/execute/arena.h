// Where every temporary lies in one block of memory, decided from when it is alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hipdnn_rt {

/// A buffer that is alive from step `first` to step `last`, both included.
struct ArenaRequest {
  std::uint64_t bytes;
  std::uint32_t first;
  std::uint32_t last;
};

struct ArenaLayout {
  /// Bytes from the arena's start, in the order of the requests, each a multiple of the alignment.
  std::vector<std::uint64_t> offsets;
  std::uint64_t arena_bytes = 0;
  /// The most bytes alive at one step: no layout can be smaller.
  std::uint64_t largest_live_bytes = 0;
};

/// Lay out all requests so that no two alive at the same step overlap. `alignment` is a power of two.
/// Throws ProgramError where the sizes overflow.
ArenaLayout plan_arena(std::span<const ArenaRequest> requests, std::size_t alignment);

}  // namespace hipdnn_rt
