// What a step of a loaded program is, in words: for profiles and lists of steps.
#pragma once

#include <string>
#include <string_view>

#include "execute/loaded_program.h"

namespace hipdnn_rt {

struct StepLabel {
  /// `execute`, `launch` or `copy`, as in a program file.
  std::string_view kind;
  /// What its executable or kernel computes; empty for a copy.
  std::string operations;
  /// The engine of its plan; empty where it has none.
  std::string engine;
};

StepLabel label_of(const LoadedProgram& program, std::size_t step);

}  // namespace hipdnn_rt
