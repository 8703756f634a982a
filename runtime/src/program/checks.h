// The checks of a program's records, for given values of the symbols: what they give is safe to run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "program/json_field.h"
#include "program/place.h"
#include "program/program.h"
#include "program_records.h"

namespace hipdnn_rt {

/// A program before it is checked as a whole.
struct ProgramParts {
  std::string target;
  records::Body<Concrete> body;
  std::vector<records::Executable<Concrete>> executables;
  std::vector<records::Kernel<Concrete>> kernels;
};

/// Throw ProgramError where descriptors contradict each other or the operands.
Executable check_executable(records::Executable<Concrete> record, const Place& place);
/// Whether one of its tensors has no elements: hipDNN takes none such, and there is nothing to do.
bool is_empty(const records::Executable<Concrete>& record);
/// Whether one of its outputs has elements.
bool has_results(const records::Executable<Concrete>& record);

/// Throw ProgramError where a kernel's tensors or code are wrong. What a function asks of its attributes and tensors is the port's to check.
Kernel check_kernel(records::Kernel<Concrete> record, const Place& place);

/// Throw ProgramError where the program is not safe to run: what it refers to is not there, or it writes what it may not. `place` is the
/// program's in the file, `owner` keeps the tensors alive. With `drops_empty`, graphs on tensors without elements are left out with their steps.
std::shared_ptr<const Program> check_program(ProgramParts parts, const Tensors& tensors, TensorOwner owner, const Place& place,
                                             bool drops_empty);

/// The index that a number is; throws ProgramError unless it is one of `count`.
inline std::uint32_t check_index(std::int64_t number, std::size_t count, const Place& place) {
  if (number < 0 || number >= static_cast<std::int64_t>(count)) {
    place.fail(range_text(0, static_cast<std::int64_t>(count) - 1), std::to_string(number));
  }
  return static_cast<std::uint32_t>(number);
}

}  // namespace hipdnn_rt
