// libFuzzer's mutations and ours, by turns: its own do not know that a number in the text has several digits.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>

#include "mutations.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  if (random() % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  const fuzz::Bytes made = fuzz::mutated(fuzz::Bytes(data, data + size), random);
  const std::size_t count = std::min(made.size(), most);
  std::copy_n(made.begin(), count, data);
  return count;
}
