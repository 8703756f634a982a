// What the operating system says of this process, and folders for a test's files.
#pragma once

#include <cstddef>
#include <functional>

#include "../check.h"
#include "../temporary_folder.h"

namespace ort_tests {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/// A sanitizer has a heap of its own, keeps freed blocks, and remembers accesses.
inline constexpr bool kHasPlainMemory = false;
#else
inline constexpr bool kHasPlainMemory = true;
#endif

/// How often to repeat what must not grow: a tenth of it where memory cannot be counted.
constexpr int times(int count) { return kHasPlainMemory ? count : count / 10; }

/// Throws check::Failure where the process grows with every turn of `work`: by more than `heap_bytes` allocated and not freed, or by open
/// files. Caches may fill in some turns; of a leak none is free.
void check_settles(std::size_t heap_bytes, const std::function<void()>& work, const check::Location& at = check::Location::current());

using ::TemporaryFolder;

}  // namespace ort_tests
