// A program for sizes between buckets: copies around the one for the buckets pad its inputs and cut its outputs back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/checks.h"

namespace hipdnn_rt {

/// A program with inputs and outputs of these dims, none of them larger: inputs are copied into the buffers that were the program's, with
/// their last elements repeated, outputs out of them. All copies are steps, so they happen where the program runs.
/// `checked` is what checking `parts` has given. Throws InputError where there is no element to repeat, or where it would take too many copies:
/// one for each row of the dims in front of the last one that differs.
ProgramParts padded_program(ProgramParts parts, const Program& checked, std::span<const std::vector<std::int64_t>> inputs,
                            std::span<const std::vector<std::int64_t>> outputs);

}  // namespace hipdnn_rt
