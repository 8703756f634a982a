// ort_ep_support_tests PYTHON FAKE_SERVER [FILTER]
#include <cstdio>

#include "cases.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s PYTHON FAKE_SERVER [FILTER]\n", argv[0]);
    return 2;
  }
  const support_tests::Tools tools{argv[1], argv[2]};
  check::Suite suite;
  support_tests::add_sha256_cases(suite);
  support_tests::add_memory_file_cases(suite);
  support_tests::add_disk_cache_cases(suite);
  support_tests::add_interpreter_cases(suite);
  support_tests::add_service_cases(suite, tools);
  support_tests::add_process_cases(suite, tools);
  return suite.run(argc > 3 ? argv[3] : "");
}
