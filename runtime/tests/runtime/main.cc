// runtime_tests HOST_FOLDER DISGUISED_FOLDER DEFERRED_FOLDER CHOOSING_FOLDER OLD_FOLDER RECORDING_FOLDER EARLY_FOLDER [FILTER]
#include <cstdio>

#include "cases.h"

int main(int argc, char** argv) {
  if (argc < 8) {
    std::fprintf(stderr, "usage: %s HOST_FOLDER DISGUISED_FOLDER DEFERRED_FOLDER CHOOSING_FOLDER OLD_FOLDER RECORDING_FOLDER EARLY_FOLDER [FILTER]\n", argv[0]);
    return 2;
  }
  const runtime_tests::Libraries libraries{argv[1], argv[2], argv[3], argv[4], argv[5], argv[6], argv[7]};
  check::Suite suite;
  runtime_tests::add_arena_cases(suite);
  runtime_tests::add_choice_cases(suite, libraries);
  runtime_tests::add_graph_cases(suite, libraries);
  runtime_tests::add_judge_cases(suite, libraries);
  runtime_tests::add_kernel_cases(suite, libraries);
  runtime_tests::add_loader_cases(suite);
  runtime_tests::add_fuzz_cases(suite, libraries);
  runtime_tests::add_run_cases(suite, libraries);
  runtime_tests::add_concurrency_cases(suite, libraries);
  runtime_tests::add_memory_cases(suite, libraries);
  runtime_tests::add_dynamic_program_cases(suite, libraries);
  runtime_tests::add_plugin_cases(suite, libraries);
  runtime_tests::add_pool_cases(suite, libraries);
  runtime_tests::add_size_cache_cases(suite);
  runtime_tests::add_specialization_cases(suite, libraries);
  runtime_tests::add_stream_cases(suite, libraries);
  return suite.run(argc > 8 ? argv[8] : "");
}
