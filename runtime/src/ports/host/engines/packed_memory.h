// Memory for packed weights: many plans' weights side by side on huge pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace hipdnn_port {

/// Bytes of a cache line, on which workspaces and packed memory start.
constexpr std::int64_t kLineBytes = 64;
/// `bytes` and what is left of the last line.
constexpr std::int64_t whole_lines(std::int64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

/// `bytes` on a 64-byte boundary, for as long as a copy of the pointer lives. Thread-safe. Requests share large blocks, because the first
/// touch of a small page costs more than packing its 4 KB does; a block goes back to the system with the last pointer into it.
std::shared_ptr<void> packed_memory(std::size_t bytes);

}  // namespace hipdnn_port
