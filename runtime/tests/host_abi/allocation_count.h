// Counts operator new in the whole process, libraries included.
#pragma once

#include <cstddef>

namespace abi {

/// Calls of operator new, by any thread, since the process began.
std::size_t allocation_count();

}  // namespace abi
