// The groups of cases. Portable ones hold for any implementation of the ABI, host ones for this project's.
#pragma once

#include "check.h"
#include "library.h"

namespace abi {

void add_handle_cases(check::Suite& suite, const Library& library);
void add_tensor_cases(check::Suite& suite, const Library& library);
void add_operation_cases(check::Suite& suite, const Library& library);
void add_graph_cases(check::Suite& suite, const Library& library);
void add_engine_cases(check::Suite& suite, const Library& library);
void add_execution_cases(check::Suite& suite, const Library& library);
void add_listing_cases(check::Suite& suite, const Library& library);
void add_process_cases(check::Suite& suite, const Library& library);
void add_serialization_cases(check::Suite& suite, const Library& library);

void add_host_operation_cases(check::Suite& suite, const Library& library);
void add_host_shape_cases(check::Suite& suite, const Library& library);
void add_host_execution_cases(check::Suite& suite, const Library& library);
void add_host_symbol_cases(check::Suite& suite, const Library& library);
void add_host_robustness_cases(check::Suite& suite, const Library& library);
void add_host_hip_cases(check::Suite& suite, const Library& library);
void add_host_module_cases(check::Suite& suite, const Library& library);

}  // namespace abi
