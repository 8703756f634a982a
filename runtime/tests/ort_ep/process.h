// What the operating system says of this process, and folders for a test's files.
#pragma once

#include <cstddef>
#include <functional>

#include "../check.h"
#include "../temporary_folder.h"

namespace ort_tests {

/// Throws check::Failure where the process grows with every turn of `work`: by more than `heap_bytes` allocated and not freed, or by open
/// files. Caches may fill in some turns; of a leak none is free.
void check_settles(std::size_t heap_bytes, const std::function<void()>& work, const check::Location& at = check::Location::current());

using ::TemporaryFolder;

}  // namespace ort_tests
