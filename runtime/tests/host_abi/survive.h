// Runs the cases so that a crash of the library under test costs one case and not the report.
#pragma once

#include <functional>
#include <string>

#include "check.h"
#include "library.h"

namespace abi {

/// Runs the cases that `add_cases` makes for the library at `backend_path`, with HIP's functions from `hip_path`, and whose name contains
/// `filter`. All run in one child process; where one ends it (a signal, abort, exit), that case has failed and a new child goes on with the next.
/// The calling process never opens the library, because neither its threads nor a device's state outlive a fork.
/// Returns the exit code: 0 if all passed, 1 if one failed or none ran, 2 if the library cannot be opened or lacks a symbol (said on stderr).
int run_surviving(const std::string& backend_path, const std::string& hip_path, const std::string& filter,
                  const std::function<void(check::Suite&, const Library&)>& add_cases);

}  // namespace abi
