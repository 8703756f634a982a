// Mutations of texts whose numbers say how large everything is, drawn at random.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace fuzz {

using Bytes = std::vector<std::uint8_t>;

/// Up to three edits, most of them of a number; the length in front of a program's header holds again, mostly.
Bytes mutated(const Bytes& seed, std::mt19937& random);

}  // namespace fuzz
