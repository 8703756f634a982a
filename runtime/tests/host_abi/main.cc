// Runs the cases on the library named on the command line.
#include <cstdio>
#include <string>
#include <vector>

#include "cases.h"
#include "survive.h"

int main(int argc, char** argv) {
  std::vector<std::string> paths;
  std::string filter;
  bool is_portable = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--portable") {
      is_portable = true;
    } else if (argument == "--filter" && i + 1 < argc) {
      filter = argv[++i];
    } else {
      paths.push_back(argument);
    }
  }
  if (paths.empty() || paths.size() > 2) {
    std::fprintf(stderr, "usage: test_host_abi LIBRARY [HIP_LIBRARY] [--portable] [--filter TEXT]\n");
    return 2;
  }
  return abi::run_surviving(paths.front(), paths.back(), filter, [is_portable](check::Suite& suite, const abi::Library& library) {
    abi::add_handle_cases(suite, library);
    abi::add_tensor_cases(suite, library);
    abi::add_operation_cases(suite, library);
    abi::add_graph_cases(suite, library);
    abi::add_engine_cases(suite, library);
    abi::add_execution_cases(suite, library);
    abi::add_listing_cases(suite, library);
    abi::add_process_cases(suite, library);
    abi::add_serialization_cases(suite, library);
    if (!is_portable) {
      abi::add_host_operation_cases(suite, library);
      abi::add_host_shape_cases(suite, library);
      abi::add_host_execution_cases(suite, library);
      abi::add_host_symbol_cases(suite, library);
      abi::add_host_robustness_cases(suite, library);
      abi::add_host_hip_cases(suite, library);
      abi::add_host_module_cases(suite, library);
    }
  });
}
