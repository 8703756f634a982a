// What the steps of a program compute, at the sizes it is loaded for: for Python to count operations and bytes.
#pragma once

#include <nanobind/nanobind.h>

#include "program/program.h"

namespace hipdnn_rt::bindings {

/// One row per step. An execution has `operands` [(is_output, bytes)] and `descriptors` [(type, {attribute: integers or references})], a launch
/// `description` (the kernel, JSON as in a program file), a copy `bytes`.
nanobind::list work_rows(const Program& program);

}  // namespace hipdnn_rt::bindings
