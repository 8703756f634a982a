// umbrella_tests ONNXRUNTIME LIBRARIES UMBRELLA FAKE_PROVIDER NO_PROVIDER MODELS PYTHON [FILTER]
#include <cstdio>

#include "cases.h"

int main(int argc, char** argv) {
  if (argc < 8) {
    std::fprintf(stderr, "usage: %s ONNXRUNTIME LIBRARIES UMBRELLA FAKE_PROVIDER NO_PROVIDER MODELS PYTHON [FILTER]\n", argv[0]);
    return 2;
  }
  const umbrella_tests::Paths paths{argv[1], argv[2], argv[3], argv[4], argv[5], argv[6], argv[7]};
  check::Suite suite;
  umbrella_tests::add_backend_cases(suite, paths);
  umbrella_tests::add_library_cases(suite, paths);
  umbrella_tests::add_session_cases(suite, paths);
  return suite.run(argc > 8 ? argv[8] : "");
}
