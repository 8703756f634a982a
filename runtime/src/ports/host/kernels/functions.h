// The makers of the functions that images may name; docs/host-library.md says what each computes.
#pragma once

#include <memory>

#include "kernel.h"

namespace hipdnn_host::kernels {

std::unique_ptr<Kernel> make_map(const Image& image);
std::unique_ptr<Kernel> make_gather(const Image& image);

}  // namespace hipdnn_host::kernels
