// Kernels that wait themselves for what is in front of them, so that they may be launched while that still runs.
#pragma once

#include <string>
#include <unordered_set>

#include "cuda_driver_abi.h"

namespace hipdnn_cuda {

/// The kernels of a module's code that have an instruction griddepcontrol.wait. It stands in front of all accesses to memory in the code that
/// this project generates; other code has it for the same purpose. None of binaries.
std::unordered_set<std::string> names_of_waiting_kernels(const void* image);

/// Keep what a loaded module's code says of its kernels; forget it.
void remember_waiting_kernels(CUmodule module, const void* image);
void forget_waiting_kernels(CUmodule module);

/// Keep that a function is one of its module's; whether it waits.
void remember_function(CUmodule module, CUfunction function, const char* name);
bool waits(CUfunction function);

}  // namespace hipdnn_cuda
