// Counts heap allocations by the library that asked for them. Replaces malloc and operator new of the whole process, so that it is linked
// into one executable only, which exports its symbols.
#pragma once

#include <functional>
#include <string_view>

namespace ort_tests {

/// How often the loaded library of the file name `library` allocates, in any thread, while `work` runs. What the C and C++ libraries
/// allocate counts for their caller; what ONNX Runtime allocates when it is called back is its own. One count at a time.
int count_allocations(std::string_view library, const std::function<void()>& work);

}  // namespace ort_tests
