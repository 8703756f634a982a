// ort_ep_memory_tests FAKE_FOLDER HOST_FOLDER ONNXRUNTIME PLUGIN [FILTER]
#include <cstdio>

#include "fixture.h"

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: %s FAKE_FOLDER HOST_FOLDER ONNXRUNTIME PLUGIN [FILTER]\n", argv[0]);
    return 2;
  }
  const memory_tests::Libraries libraries{argv[1], argv[2], argv[3], argv[4]};
  check::Suite suite;
  memory_tests::add_pool_cases(suite, libraries);
  memory_tests::add_stream_order_cases(suite, libraries);
  memory_tests::add_concurrency_cases(suite, libraries);
  memory_tests::add_ort_cases(suite, libraries);
  memory_tests::add_session_cases(suite, libraries);
  return suite.run(argc > 5 ? argv[5] : "");
}
