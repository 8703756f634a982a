#include "program/checksum.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

namespace hipdnn_rt {
namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
/// Below this a thread costs more than it saves.
constexpr std::size_t kBytesPerThread = 8 << 20;
constexpr std::size_t kThreadsMax = 4;

/// The part of the sum that `bytes` contribute where their first word has index `first_word`.
std::uint64_t partial_sum(std::span<const std::byte> bytes, std::uint64_t first_word) {
  const std::size_t words = bytes.size() / kWordBytes;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i * kWordBytes, kWordBytes);
    sum += word * (2 * (first_word + i) + 1);
  }
  if (const std::size_t rest = bytes.size() % kWordBytes; rest != 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + words * kWordBytes, rest);
    sum += word * (2 * (first_word + words) + 1);
  }
  return sum;
}

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes) {
  const std::size_t limit = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kThreadsMax);
  const std::size_t parts = std::clamp<std::size_t>(bytes.size() / kBytesPerThread, 1, limit);
  const std::size_t part_bytes = bytes.size() / parts / kWordBytes * kWordBytes;
  std::vector<std::uint64_t> sums(parts, 0);
  const auto sum_part = [&](std::size_t part) {
    const std::size_t begin = part * part_bytes;
    sums[part] = partial_sum(part + 1 == parts ? bytes.subspan(begin) : bytes.subspan(begin, part_bytes), begin / kWordBytes);
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t part = 1; part < parts; ++part) {
      try {
        helpers.emplace_back(sum_part, part);
      } catch (const std::system_error&) {  // no more threads
        sum_part(part);
      }
    }
    sum_part(0);
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t part : sums) sum += part;
  return sum;
}

}  // namespace hipdnn_rt
