// Work shared by the threads of one execution.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../threads/thread_team.h"

namespace hipdnn_port {

/// Parts of at most `most` that something is divided into.
inline std::int64_t parts_of(std::int64_t count, std::int64_t most) { return (count + most - 1) / most; }

/// Threads worth starting for `elements` elements through `steps` instructions each: waking one costs some microseconds.
inline int useful_threads(int threads, std::int64_t tiles, std::int64_t elements, std::size_t steps) {
  constexpr std::int64_t work_per_thread = 131072;  // about eight microseconds
  const std::int64_t by_work = elements * (static_cast<std::int64_t>(steps) + 1) / work_per_thread;
  return static_cast<int>(std::clamp<std::int64_t>(std::min(by_work, tiles), 1, std::max(1, threads)));
}

/// Calls body(first, last, thread) with consecutive ranges that cover [0, count), at most `threads` at once, the first on the caller.
template <class Body>
void parallel_ranges(int threads, std::int64_t count, const Body& body) {
  if (threads <= 1) {
    body(std::int64_t{0}, count, 0);
    return;
  }
  struct Work {
    const Body& body;
    std::int64_t count;
    int threads;
  } work{body, count, threads};
  // A region within another has one part, which then runs all ranges.
  const PartFunction run_ranges = [](void* data) noexcept {
    const Work& w = *static_cast<const Work*>(data);
    for (int thread = part_number(); thread < w.threads; thread += part_count()) {
      w.body(w.count * thread / w.threads, w.count * (thread + 1) / w.threads, thread);
    }
  };
  run_region(run_ranges, &work, threads);
}

}  // namespace hipdnn_port
