// ort_ep_tests ONNXRUNTIME LIBRARY MODELS PYTHON [FILTER]
#include <cstdio>

#include "cases.h"

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: %s ONNXRUNTIME LIBRARY MODELS PYTHON [FILTER]\n", argv[0]);
    return 2;
  }
  const ort_tests::Fixture fixture(argv[1], argv[2], argv[3], argv[4]);
  check::Suite suite;
  ort_tests::add_run_cases(suite, fixture);
  ort_tests::add_session_cases(suite, fixture);
  return suite.run(argc > 5 ? argv[5] : "");
}
