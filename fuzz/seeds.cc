// fuzz_seeds FOLDER: writes the programs of the runtime's tests as files, without a checksum, which a mutation would break.
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "../runtime/tests/runtime/sample_program.h"

int main(int argc, char** argv) {
  using namespace runtime_tests;
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const std::map<std::string, Sample> samples{{"pointwise", relu_of_sum({3, 5})},
                                              {"convolutions", two_convolutions(2, 4, true)},
                                              {"kernels", doubled_rows(3, 5, {2, 0, -1})},
                                              {"dynamic", dynamic_convolution()},
                                              {"computed", sum_with_computed({reference(0)})},
                                              {"specialized", specialized_relu()}};
  for (const auto& [name, sample] : samples) {
    const std::vector<std::byte> bytes = sample.container();
    std::ofstream file(std::string(argv[1]) + "/" + name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) return 1;
  }
  return 0;
}
