// What plans of one graph answer on the same operands: one that answers otherwise than the others is not to be trusted, however fast it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hipdnn_backend.h"

namespace hipdnn_rt {

/// Fill `memory` with numbers from half to one, of either sign, in types of 16 bits and more; zeros in others, where an index or a length has
/// to be a valid one.
void fill_operand(std::span<std::byte> memory, hipdnnDataType_t dtype, std::uint64_t seed);

/// Elements of one result.
struct Answer {
  hipdnnDataType_t dtype;
  std::vector<std::byte> bytes;
};

/// Whether two answers are the same but for rounding: by the distance of all elements together over their size. Types that are not compared
/// always agree.
enum class Of { two_plans, one_plan };
bool agree(const Answer& one, const Answer& other, Of of = Of::two_plans);
bool agree(std::span<const Answer> one, std::span<const Answer> other, Of of = Of::two_plans);

}  // namespace hipdnn_rt
