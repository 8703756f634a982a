// A checksum against damage (not against intent), as fast as memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hipdnn_rt {

/// The sum of w[i] * (2 i + 1) modulo 2^64 over the 64-bit little-endian words w of `bytes`, the last one padded with zeros.
/// Any change within one word changes it: the factors are odd. Large inputs are summed on several threads.
std::uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace hipdnn_rt
