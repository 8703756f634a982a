// Constants whose elements are computed from the sizes of dynamic dimensions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "program/place.h"
#include "program_records.h"

namespace hipdnn_rt {

/// Bytes of a program's computed constants, together.
constexpr std::uint64_t kComputedBytesLimit = std::uint64_t{1} << 31;

/// Compute the elements of a constant that has values, and let `data` show them; its bytes are taken off what is `left` of the limit. Returns
/// what owns the memory, aligned as tensors of a file are. Throws ProgramError.
std::shared_ptr<const void> compute_constant(const records::Constant<Concrete>& constant, std::span<const std::byte>& data, std::uint64_t& left,
                                             const Place& place);

}  // namespace hipdnn_rt
