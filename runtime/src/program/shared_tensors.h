// Tensors of several programs that have the same bytes.
#pragma once

#include "program/program.h"

namespace hipdnn_rt {

/// Let tensors lie where `others` have the same bytes. Returns whether any does now. Small ones stay, and those that are aligned otherwise.
bool share_tensors(Tensors& tensors, const Tensors& others);

}  // namespace hipdnn_rt
