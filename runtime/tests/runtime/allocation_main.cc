// allocation_test HOST_FOLDER: counts every heap allocation of the process while a program runs in steady state.
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "../check.h"
#include "sample_program.h"
#include "session.h"

namespace {

std::atomic<bool> is_counting{false};
std::atomic<int> allocation_count{0};

void note_allocation() {
  if (is_counting.load(std::memory_order_relaxed)) allocation_count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// The C library's own entries under the interposed ones. operator new ends in malloc, so this sees C++ allocations too, in every library.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  note_allocation();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  note_allocation();
  return __libc_calloc(count, bytes);
}
void* realloc(void* pointer, std::size_t bytes) {
  note_allocation();
  return __libc_realloc(pointer, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  note_allocation();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** pointer, std::size_t alignment, std::size_t bytes) {
  *pointer = memalign(alignment, bytes);
  return *pointer ? 0 : 12;
}
}

namespace {

using namespace runtime_tests;

/// Allocations of `runs` runs with the same arrays, after a few that do not count.
int count_allocations(const std::string& folder, const Sample& sample, const std::vector<std::size_t>& input_elements, int threads) {
  const auto program = sample.parse();
  hipdnn_rt::ContextPool pool(hipdnn_rt::LoadedProgram::load(open_host({folder, ""}, threads), program));
  std::vector<Array> arrays;
  std::vector<hipdnn_rt::InputArray> inputs;
  for (const std::size_t elements : input_elements) inputs.push_back({arrays.emplace_back(random_values(elements, 1)).data()});
  const Array out(program->outputs().at(0).bytes);
  const hipdnn_rt::OutputArray output{out.data()};
  for (int i = 0; i < 3; ++i) pool.run(inputs, {&output, 1});
  allocation_count = 0;
  is_counting = true;
  for (int i = 0; i < 10; ++i) pool.run(inputs, {&output, 1});
  is_counting = false;
  return allocation_count;
}

void test_counter_when_something_allocates() {
  allocation_count = 0;
  is_counting = true;
  std::free(std::malloc(10));
  delete new std::atomic<int>(1);
  is_counting = false;
  check::that(allocation_count >= 1, "the counter does not see allocations");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s HOST_FOLDER\n", argv[0]);
    return 2;
  }
  const std::string folder = argv[1];
  check::Suite suite;
  suite.add("allocation: counted when something allocates", test_counter_when_something_allocates);
  for (const int threads : {1, 2}) {
    suite.add("allocation: none in steady state when steps are pointwise, threads " + std::to_string(threads),
              [=] { check::equal(count_allocations(folder, relu_of_sum({64, 64}), {4096, 4096}, threads), 0); });
    suite.add("allocation: none in steady state when steps are convolutions, threads " + std::to_string(threads),
              [=] { check::equal(count_allocations(folder, two_convolutions(16, 12, false), {16 * 12 * 12}, threads), 0); });
  }
  return suite.run();
}
