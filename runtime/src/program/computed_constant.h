// Constants whose elements are computed from the sizes of dynamic dimensions.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "program/place.h"
#include "program_records.h"

namespace hipdnn_rt {

/// Compute the elements of a constant that has values, and let `data` show them. Returns what owns the memory, aligned as tensors of a file
/// are. Throws ProgramError.
std::shared_ptr<const void> compute_constant(const records::Constant<Concrete>& constant, std::span<const std::byte>& data, const Place& place);

}  // namespace hipdnn_rt
