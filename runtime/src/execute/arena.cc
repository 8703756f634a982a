#include "execute/arena.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>

#include "device/error.h"
#include "program/checked.h"

namespace hipdnn_rt {
namespace {

using Order = std::vector<std::uint32_t>;

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

bool is_alive_together(const ArenaRequest& a, const ArenaRequest& b) { return a.first <= b.last && b.first <= a.last; }

/// Refuse sizes whose sum, alignment included, would wrap: every later sum is then safe.
void check_total(std::span<const ArenaRequest> requests, std::uint64_t alignment) {
  std::optional<std::uint64_t> total = 0;
  for (const ArenaRequest& request : requests) {
    const auto padded = checked_add(request.bytes, alignment);
    total = total && padded ? checked_add(*total, *padded) : std::nullopt;
    if (!total) throw ProgramError("program.buffers: the sizes of all temporaries overflow 64 bits");
  }
}

/// Where request `index` fits best among those placed before it, which are sorted by offset: the tightest gap, or the end.
std::uint64_t find_offset(std::span<const ArenaRequest> requests, const Order& placed, const std::vector<std::uint64_t>& offsets,
                          std::uint32_t index, std::uint64_t alignment) {
  const ArenaRequest& request = requests[index];
  std::uint64_t position = 0;
  std::uint64_t best = 0;
  std::uint64_t best_gap = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint32_t other : placed) {
    if (!is_alive_together(request, requests[other])) continue;
    if (offsets[other] > position && offsets[other] - position >= request.bytes && offsets[other] - position < best_gap) {
      best = position;
      best_gap = offsets[other] - position;
    }
    position = std::max(position, align_up(offsets[other] + requests[other].bytes, alignment));
  }
  return best_gap == std::numeric_limits<std::uint64_t>::max() ? position : best;
}

ArenaLayout place(std::span<const ArenaRequest> requests, const Order& order, std::uint64_t alignment) {
  ArenaLayout layout;
  layout.offsets.resize(requests.size(), 0);
  Order placed;
  placed.reserve(requests.size());
  for (const std::uint32_t index : order) {
    if (requests[index].bytes == 0) continue;
    const std::uint64_t offset = find_offset(requests, placed, layout.offsets, index, alignment);
    layout.offsets[index] = offset;
    layout.arena_bytes = std::max(layout.arena_bytes, offset + requests[index].bytes);
    const auto position = std::upper_bound(placed.begin(), placed.end(), offset,
                                           [&](std::uint64_t value, std::uint32_t other) { return value < layout.offsets[other]; });
    placed.insert(position, index);
  }
  return layout;
}

/// The most bytes that are alive together, each request's rounded up to `alignment`.
std::uint64_t largest_live(std::span<const ArenaRequest> requests, std::uint64_t alignment) {
  // Sweep over starts (+bytes) and ends (-bytes, one step later); at equal steps ends come first.
  struct Event {
    std::uint64_t step;
    bool is_start;
    std::uint64_t bytes;
  };
  std::vector<Event> events;
  for (const ArenaRequest& request : requests) {
    const std::uint64_t bytes = align_up(request.bytes, alignment);
    events.push_back({request.first, true, bytes});
    events.push_back({std::uint64_t{request.last} + 1, false, bytes});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.step != b.step ? a.step < b.step : a.is_start < b.is_start;
  });
  std::uint64_t live = 0;
  std::uint64_t largest = 0;
  for (const Event& event : events) {
    live = event.is_start ? live + event.bytes : live - event.bytes;
    largest = std::max(largest, live);
  }
  return largest;
}

}  // namespace

ArenaLayout plan_arena(std::span<const ArenaRequest> requests, std::size_t alignment) {
  check_total(requests, alignment);
  const std::uint64_t bound = largest_live(requests, 1);
  const std::uint64_t good = largest_live(requests, alignment);
  const auto bytes = [&](std::uint32_t i) { return static_cast<double>(requests[i].bytes); };
  const auto steps = [&](std::uint32_t i) { return static_cast<double>(requests[i].last - requests[i].first) + 1; };
  // No single order is always best; the first that wastes nothing but the rest of a unit ends the search.
  const std::array<std::function<double(std::uint32_t)>, 4> keys{
      bytes,
      [&](std::uint32_t i) { return bytes(i) * steps(i); },
      steps,
      [&](std::uint32_t i) { return -static_cast<double>(requests[i].first); },
  };
  ArenaLayout best;
  best.arena_bytes = std::numeric_limits<std::uint64_t>::max();
  for (const auto& key : keys) {
    Order order(requests.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) > key(b); });
    ArenaLayout layout = place(requests, order, alignment);
    if (layout.arena_bytes < best.arena_bytes) best = std::move(layout);
    if (best.arena_bytes <= good) break;
  }
  best.largest_live_bytes = bound;
  return best;
}

}  // namespace hipdnn_rt
