#include "mutations.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace fuzz {

namespace {

/// A number in the text becomes another: sizes, offsets and indices are what a hostile file lies in.
void replace_number(Bytes& bytes, std::mt19937& random) {
  constexpr std::array<std::string_view, 12> kNumbers{"0", "1", "2", "3", "7", "16", "64", "4096", "1048577", "2147483648", "4611686018427387904", "-1"};
  const auto is_digit = [&](std::size_t at) { return at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9'; };
  const auto begins = [&](std::size_t at) { return is_digit(at) && at > 0 && !is_digit(at - 1) && std::isalpha(bytes[at - 1]) == 0; };
  std::size_t begin = random() % bytes.size();
  while (begin < bytes.size() && !begins(begin)) ++begin;
  std::size_t end = begin;
  while (is_digit(end)) ++end;
  std::string number(kNumbers[random() % kNumbers.size()]);
  // Neighbours of a number get past more checks.
  if (random() % 2 == 0 && end - begin < 10) {
    const long near = std::atol(std::string(bytes.begin() + static_cast<std::ptrdiff_t>(begin), bytes.begin() + static_cast<std::ptrdiff_t>(end)).c_str());
    number = std::to_string(random() % 2 == 0 ? near + 1 : std::max(near - 1, 0L));
  }
  const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(begin);
  bytes.insert(bytes.erase(at, bytes.begin() + static_cast<std::ptrdiff_t>(end)), number.begin(), number.end());
}

/// The first 8 bytes of a program are the header's length, which holds again after a mutation of the header.
void mend_length(Bytes& bytes, std::size_t data_bytes) {
  constexpr std::size_t kLengthBytes = 8;
  const std::uint64_t length = bytes.size() - std::min<std::size_t>(bytes.size(), kLengthBytes + data_bytes);
  for (std::size_t i = 0; i < kLengthBytes && i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(length >> (8 * i));
}

/// What lies behind the header; nothing where the first bytes are no header's length.
std::optional<std::size_t> data_bytes_of(const Bytes& seed) {
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | (i < seed.size() ? seed[i] : 0);
  if (seed.size() < 8 || length > seed.size() - 8) return std::nullopt;
  return seed.size() - 8 - static_cast<std::size_t>(length);
}

}  // namespace

Bytes mutated(const Bytes& seed, std::mt19937& random) {
  Bytes bytes = seed;
  for (auto edit = random() % 3 + 1; edit > 0 && !bytes.empty(); --edit) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 8) {
      case 0: bytes[at] ^= static_cast<std::uint8_t>(1U << random() % 8); break;
      case 1: bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at)); break;
      default: replace_number(bytes, random);
    }
  }
  const std::optional<std::size_t> data_bytes = data_bytes_of(seed);
  if (data_bytes && random() % 8 != 0) mend_length(bytes, *data_bytes);
  return bytes;
}

}  // namespace fuzz
