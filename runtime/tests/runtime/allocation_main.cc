// allocation_test HOST_FOLDER: counts the heap allocations of all libraries in the process while a program runs in steady state.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <string_view>

#include "../check.h"
#include "sample_program.h"
#include "session.h"

namespace {

/// Who asked for memory while counting is on: code addresses, as many as fit.
struct Record {
  std::atomic<bool> is_on{false};
  std::atomic<std::size_t> count{0};
  std::array<std::atomic<void*>, 4096> callers{};

  void note(void* caller) {
    if (!is_on.load(std::memory_order_relaxed)) return;
    const std::size_t index = count.fetch_add(1, std::memory_order_relaxed);
    if (index < callers.size()) callers[index].store(caller, std::memory_order_relaxed);
  }
};

// Reached from malloc, so constant-initialized and without a destructor.
constinit Record record;

}  // namespace

// The executable exports these, so that every library of the process binds to them. The C library's own entries lie under them.
#define EXPORTED __attribute__((visibility("default"), noinline))

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

EXPORTED void* malloc(std::size_t bytes) {
  record.note(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
EXPORTED void* calloc(std::size_t count, std::size_t bytes) {
  record.note(__builtin_return_address(0));
  return __libc_calloc(count, bytes);
}
EXPORTED void* realloc(void* pointer, std::size_t bytes) {
  record.note(__builtin_return_address(0));
  return __libc_realloc(pointer, bytes);
}
EXPORTED void* memalign(std::size_t alignment, std::size_t bytes) {
  record.note(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
EXPORTED void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  record.note(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
EXPORTED int posix_memalign(void** pointer, std::size_t alignment, std::size_t bytes) {
  record.note(__builtin_return_address(0));
  *pointer = __libc_memalign(alignment, bytes);
  return *pointer ? 0 : 12;
}
}

// Here rather than in the C++ library, so that the caller is the one who wrote `new`.
EXPORTED void* operator new(std::size_t bytes) {
  record.note(__builtin_return_address(0));
  if (void* pointer = __libc_malloc(bytes == 0 ? 1 : bytes)) return pointer;
  throw std::bad_alloc();
}
EXPORTED void operator delete(void* pointer) noexcept { std::free(pointer); }
EXPORTED void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }

namespace {

using namespace runtime_tests;

/// Allocations by the library that made them.
struct Counts {
  int of_onednn = 0;
  int of_others = 0;
};

Counts counts() {
  check::that(record.count <= record.callers.size(), "more allocations than the record holds");
  Counts result;
  for (std::size_t i = 0; i < record.count; ++i) {
    Dl_info info{};
    const bool is_known = dladdr(record.callers[i], &info) != 0 && info.dli_fname != nullptr;
    ++(is_known && std::string_view(info.dli_fname).find("hipdnn_dnnl") != std::string_view::npos ? result.of_onednn : result.of_others);
  }
  return result;
}

/// Counts what `work` allocates.
template <typename Work>
Counts count_allocations(const Work& work) {
  record.count = 0;
  record.is_on = true;
  work();
  record.is_on = false;
  return counts();
}

/// A program with arrays to run it on.
struct Runnable {
  Runnable(const std::string& folder, const Sample& sample, int threads)
      : device(open_host({folder, "", ""}, threads)), program(sample.parse()), pool(hipdnn_rt::LoadedProgram::load(device, program)) {
    for (const hipdnn_rt::Argument& input : program->inputs()) {
      inputs.push_back({arrays.emplace_back(random_values(input.bytes / sizeof(float), 1)).data()});
    }
    outputs.push_back({arrays.emplace_back(program->outputs().at(0).bytes).data()});
    stream = device->create_stream();
    other_stream = device->create_stream();
  }
  void run_all_ways() {
    pool.run(inputs, outputs);
    pool.enqueue(inputs, outputs, stream.get());
    pool.enqueue(inputs, outputs, other_stream.get());
    pool.enqueue(inputs, outputs, nullptr);
  }

  std::shared_ptr<const hipdnn_rt::Device> device;
  std::shared_ptr<const hipdnn_rt::Program> program;
  hipdnn_rt::Stream stream, other_stream;
  std::vector<Array> arrays;
  std::vector<hipdnn_rt::InputArray> inputs;
  std::vector<hipdnn_rt::OutputArray> outputs;
  hipdnn_rt::ContextPool pool;
};

Counts count_in_steady_state(const std::string& folder, const Sample& sample, int threads) {
  Runnable runnable(folder, sample, threads);
  // Often enough that every thread of the library has taken part once: it is then that oneDNN's memory of a thread is made.
  for (int i = 0; i < 100; ++i) runnable.run_all_ways();
  return count_allocations([&] {
    for (int i = 0; i < 10; ++i) runnable.run_all_ways();
  });
}

/// As many different arrays in turn as a step keeps variant packs for.
Counts count_when_arrays_take_turns(const std::string& folder) {
  Runnable runnable(folder, relu({16}), 1);
  for (std::size_t i = 1; i < hipdnn_rt::VariantPackCache::kCapacity; ++i) {
    runnable.outputs.push_back({runnable.arrays.emplace_back(runnable.program->outputs().at(0).bytes).data()});
  }
  const auto round = [&] {
    for (const hipdnn_rt::OutputArray& output : runnable.outputs) runnable.pool.run(runnable.inputs, {&output, 1});
  };
  round();
  return count_allocations([&] {
    for (int i = 0; i < 3; ++i) round();
  });
}

/// Runs of several threads at once on one pool: the fewest allocations of a phase. A context allocates when it is made and when it meets
/// a thread's arrays, so of more phases than that can happen at least one is in steady state.
int fewest_when_threads_share_a_pool(const std::string& folder) {
  constexpr int threads = 4;
  constexpr int phases = threads + threads * threads + threads + 1;
  const auto program = relu({16}).parse();
  hipdnn_rt::ContextPool pool(hipdnn_rt::LoadedProgram::load(open_host({folder, "", ""}), program));
  std::barrier gate(threads + 1);
  std::vector<std::jthread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      const Array x(std::vector<float>(16, 1.0F)), y(16 * sizeof(float));
      const hipdnn_rt::InputArray in{x.data()};
      const hipdnn_rt::OutputArray out{y.data()};
      for (int phase = 0; phase < phases; ++phase) {
        gate.arrive_and_wait();
        for (int i = 0; i < 200; ++i) pool.run({&in, 1}, {&out, 1});
        gate.arrive_and_wait();
      }
    });
  }
  int fewest = std::numeric_limits<int>::max();
  for (int phase = 0; phase < phases; ++phase) {
    const Counts counts = count_allocations([&] {
      gate.arrive_and_wait();
      gate.arrive_and_wait();
    });
    fewest = std::min(fewest, counts.of_others);
  }
  return fewest;
}

void test_counter_when_something_allocates(const std::string& folder) {
  const auto device = open_host({folder, "", ""});
  const Counts here = count_allocations([] { ::operator delete(::operator new(8)); });
  check::that(here.of_others >= 1, "the counter does not see the executable's allocations");
  const Counts there = count_allocations([&] { static_cast<void>(device->create_stream()); });
  check::that(there.of_others >= 1, "the counter does not see the host library's allocations");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s HOST_FOLDER\n", argv[0]);
    return 2;
  }
  const std::string folder = argv[1];
  check::Suite suite;
  suite.add("allocation: counted when something allocates", [=] { test_counter_when_something_allocates(folder); });
  for (const int threads : {1, 2}) {
    suite.add("allocation: none in steady state when steps are pointwise, threads " + std::to_string(threads), [=] {
      const Counts counts = count_in_steady_state(folder, relu_of_sum({64, 64}), threads);
      check::equal(counts.of_others + counts.of_onednn, 0);
    });
    suite.add("allocation: none in steady state when steps are launches, threads " + std::to_string(threads), [=] {
      const Counts counts = count_in_steady_state(folder, doubled_rows(1024, 512, std::vector<std::int32_t>(1024, 5)), threads);
      check::equal(counts.of_others + counts.of_onednn, 0);
    });
    // oneDNN makes a table of a primitive's arguments in each of its calls.
    suite.add("allocation: oneDNN's own in steady state when steps are convolutions, threads " + std::to_string(threads), [=] {
      const Counts counts = count_in_steady_state(folder, two_convolutions(16, 12, false), threads);
      check::equal(counts.of_others, 0);
      check::that(counts.of_onednn > 0, "oneDNN allocates no more: this case can be as strict as the one before");
    });
  }
  suite.add("allocation: none when arrays take turns", [=] { check::equal(count_when_arrays_take_turns(folder).of_others, 0); });
  suite.add("allocation: none when threads share a pool", [=] { check::equal(fewest_when_threads_share_a_pool(folder), 0); });
  return suite.run();
}
