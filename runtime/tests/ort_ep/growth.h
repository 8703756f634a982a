// How much the process may grow between two looks at it.
#pragma once

#include <cstddef>

#include "../check.h"

namespace ort_tests {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/// A sanitizer keeps freed blocks, and what it remembers of every access.
inline constexpr bool kHasOwnMemory = false;
#else
inline constexpr bool kHasOwnMemory = true;
#endif

/// Far below what a leak of one small block per run, or of one buffer per session, comes to.
inline constexpr std::size_t kGrowthBytes = std::size_t{1} << 20;

inline void check_growth(std::size_t before, std::size_t after, const check::Location& at = check::Location::current()) {
  if (!kHasOwnMemory || after <= before + kGrowthBytes) return;
  throw check::Failure("resident memory grew by " + std::to_string(after - before) + " bytes, expected at most " +
                           std::to_string(kGrowthBytes),
                       at);
}

}  // namespace ort_tests
