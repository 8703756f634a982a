// The groups of cases of the runtime's test executable.
#pragma once

#include <string>

#include "../check.h"

namespace runtime_tests {

/// Where the libraries under test lie.
struct Libraries {
  /// Folder of libhipdnn_host.so.
  std::string host;
  /// Folder where it stands under the names of AMD's libraries, without its constants extension: the runtime must treat it as a device.
  std::string disguised;
  /// Folder where it stands under those names behind streams that work on threads of their own.
  std::string deferred;
  /// Folder of a port with several engines for every graph, under those names.
  std::string choosing = {};
  /// Folder of a hipDNN library that lacks functions, under those names.
  std::string old = {};
  /// Folder where the host library stands under those names and what it is told of plugins and policies is written down.
  std::string recording = {};
  /// Folder where it stands under those names and has descriptors of neither tensors nor operations.
  std::string early = {};
};

void add_arena_cases(check::Suite& suite);
void add_choice_cases(check::Suite& suite, const Libraries& libraries);
void add_judge_cases(check::Suite& suite, const Libraries& libraries);
void add_graph_cases(check::Suite& suite, const Libraries& libraries);
void add_kernel_cases(check::Suite& suite, const Libraries& libraries);
void add_loader_cases(check::Suite& suite);
void add_fuzz_cases(check::Suite& suite, const Libraries& libraries);
void add_run_cases(check::Suite& suite, const Libraries& libraries);
void add_concurrency_cases(check::Suite& suite, const Libraries& libraries);
void add_memory_cases(check::Suite& suite, const Libraries& libraries);
void add_dynamic_program_cases(check::Suite& suite, const Libraries& libraries);
void add_specialization_cases(check::Suite& suite, const Libraries& libraries);
void add_plugin_cases(check::Suite& suite, const Libraries& libraries);
void add_pool_cases(check::Suite& suite, const Libraries& libraries);
void add_size_cache_cases(check::Suite& suite);
void add_stream_cases(check::Suite& suite, const Libraries& libraries);

}  // namespace runtime_tests
