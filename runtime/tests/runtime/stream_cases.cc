// Work on the caller's streams: what is queued, what waits for what, and what an arena in use is protected from.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <random>
#include <thread>

#include "cases.h"
#include "deferred_port.h"
#include "device/error.h"
#include "sample_program.h"
#include "session.h"

namespace runtime_tests {
namespace {

using hipdnn_rt::Context;
using hipdnn_rt::ContextPool;
using hipdnn_rt::Memory;

constexpr std::size_t kElements = 64;
constexpr float kUntouched = -7;

/// Time in which a stream that wrongly does not wait gets ahead.
void give_the_streams_time() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

/// relu(a + b), which keeps the sum in the arena, on the port with streams of their own time.
struct Deferred {
  explicit Deferred(const Libraries& libraries) : device(open_deferred(libraries)) {
    void* const port = dlopen((libraries.deferred + "/libhipdnn_backend.so").c_str(), RTLD_NOW | RTLD_NOLOAD);
    check::that(port != nullptr, "the deferred port is not loaded");
    allow = reinterpret_cast<deferred_allow_t>(dlsym(port, "deferred_allow"));
    release = reinterpret_cast<deferred_release_t>(dlsym(port, "deferred_release"));
    fail_after = reinterpret_cast<deferred_fail_after_t>(dlsym(port, "deferred_fail_after"));
    move = reinterpret_cast<deferred_move_t>(dlsym(port, "deferred_move"));
    Sample sample = relu_of_sum({static_cast<std::int64_t>(kElements)});
    sample.program["target"] = "hip";
    loaded = hipdnn_rt::LoadedProgram::load(device, sample.parse());
  }
  void synchronize(hipStream_t stream) const { hipdnn_rt::check(hip(), hip().stream_synchronize(stream), "hipStreamSynchronize"); }
  const hipdnn_rt::HipApi& hip() const { return device->library().hip(); }

  std::shared_ptr<const hipdnn_rt::Device> device;
  std::shared_ptr<const hipdnn_rt::LoadedProgram> loaded;
  deferred_allow_t allow;
  deferred_release_t release;
  deferred_fail_after_t fail_after;
  deferred_move_t move;
};

/// The arrays of one run and what must come out.
struct Call {
  explicit Call(std::uint32_t seed, Memory memory = Memory::device)
      : a(random_values(kElements, seed)), b(random_values(kElements, seed + 1000)), y(std::vector<float>(kElements, kUntouched)) {
    inputs = {{a.data(), memory}, {b.data(), memory}};
    outputs = {{y.data(), memory}};
  }
  bool is_untouched() const {
    return std::all_of(y.data(), y.data() + kElements, [](float value) { return value == kUntouched; });
  }
  void check_done() const {
    for (std::size_t i = 0; i < kElements; ++i) check::equal(y.data()[i], std::max(a.data()[i] + b.data()[i], 0.0F), "value");
  }

  Array a, b, y;
  std::vector<hipdnn_rt::InputArray> inputs;
  std::vector<hipdnn_rt::OutputArray> outputs;
};

/// Lets a stream begin some tasks and no more, until released. Declare it after all that the stream's work needs, so that a failing test
/// ends too.
class Hold {
 public:
  Hold(const Deferred& port, hipStream_t stream, int tasks) : port_(port), stream_(stream) { port_.allow(stream_, tasks); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() { release(); }
  void release() const { port_.release(stream_); }

 private:
  const Deferred& port_;
  hipStream_t stream_;
};

void test_returns_at_once_when_enqueued(const Libraries& libraries) {
  const Deferred port(libraries);
  for (const Memory memory : {Memory::host, Memory::device}) {
    const Call call(1, memory);
    const hipdnn_rt::Stream stream = port.device->create_stream();
    Context context(port.loaded);
    const Hold hold(port, stream.get(), 0);
    context.enqueue(call.inputs, call.outputs, stream.get());
    check::that(call.is_untouched(), "a held stream has written");
    hold.release();
    port.synchronize(stream.get());
    call.check_done();
  }
}

void test_arena_kept_when_the_stream_changes(const Libraries& libraries) {
  const Deferred port(libraries);
  const Call first(1), second(2), third(3);
  const hipdnn_rt::Stream first_stream = port.device->create_stream(), second_stream = port.device->create_stream();
  Context context(port.loaded);
  // The sum lies in the arena; whoever writes there now breaks the first call.
  const Hold hold(port, first_stream.get(), 1);
  context.enqueue(first.inputs, first.outputs, first_stream.get());
  context.enqueue(second.inputs, second.outputs, second_stream.get());
  context.enqueue(third.inputs, third.outputs, nullptr);
  give_the_streams_time();
  check::that(second.is_untouched() && third.is_untouched(), "a stream did not wait for the one before it");
  hold.release();
  port.synchronize(nullptr);
  for (const Call* call : {&first, &second, &third}) call->check_done();
}

void test_arena_kept_when_threads_have_streams_of_one_name(const Libraries& libraries) {
  const Deferred port(libraries);
  const Call first(1), second(2);
  Context context(port.loaded);
  std::jthread other;
  const Hold hold(port, hipStreamPerThread, 1);
  context.enqueue(first.inputs, first.outputs, hipStreamPerThread);
  other = std::jthread([&] {
    context.enqueue(second.inputs, second.outputs, hipStreamPerThread);
    port.synchronize(hipStreamPerThread);
  });
  give_the_streams_time();
  check::that(second.is_untouched(), "the other thread's stream did not wait");
  hold.release();
  other.join();
  first.check_done();
  second.check_done();
}

void test_arena_kept_when_a_run_follows(const Libraries& libraries) {
  const Deferred port(libraries);
  const Call queued(1), own(2), again(3);
  const hipdnn_rt::Stream stream = port.device->create_stream();
  Context context(port.loaded);
  std::atomic<bool> is_done = false;
  std::jthread runner;
  const Hold hold(port, stream.get(), 1);
  context.enqueue(queued.inputs, queued.outputs, stream.get());
  runner = std::jthread([&] {
    context.run(own.inputs, own.outputs);
    is_done = true;
  });
  give_the_streams_time();
  check::that(!is_done && own.is_untouched(), "the run did not wait for the caller's stream");
  hold.release();
  runner.join();
  queued.check_done();
  own.check_done();
  context.enqueue(again.inputs, again.outputs, stream.get());
  port.synchronize(stream.get());
  again.check_done();
}

void test_waited_for_when_destroyed(const Libraries& libraries) {
  const Deferred port(libraries);
  const Call call(1);
  const hipdnn_rt::Stream stream = port.device->create_stream();
  auto context = std::make_unique<Context>(port.loaded);
  std::atomic<bool> is_gone = false;
  std::jthread destroyer;
  const Hold hold(port, stream.get(), 1);
  context->enqueue(call.inputs, call.outputs, stream.get());
  destroyer = std::jthread([&] {
    context.reset();
    is_gone = true;
  });
  give_the_streams_time();
  check::that(!is_gone, "a context is gone while its work is queued");
  hold.release();
  destroyer.join();
  call.check_done();
}

void test_nothing_left_running_when_a_step_fails(const Libraries& libraries) {
  const Deferred port(libraries);
  const Call failing(1), next(2);
  const hipdnn_rt::Stream stream = port.device->create_stream(), other = port.device->create_stream();
  Context context(port.loaded);
  std::atomic<bool> is_over = false;
  std::string message;
  std::jthread caller;
  const Hold hold(port, stream.get(), 0);
  port.fail_after(1);
  caller = std::jthread([&] {
    message = error_of<hipdnn_rt::DeviceError>([&] { context.enqueue(failing.inputs, failing.outputs, stream.get()); });
    is_over = true;
  });
  give_the_streams_time();
  port.fail_after(std::numeric_limits<int>::max());
  check::that(!is_over, "the call failed while its first step was queued");
  hold.release();
  caller.join();
  check::contains(message, "hipdnnBackendExecute(step relu)");
  context.enqueue(next.inputs, next.outputs, other.get());
  port.synchronize(other.get());
  next.check_done();
}

/// Contexts go from stream to stream with work still queued: fewer contexts than streams, since a lease ends before its work.
void test_refused_when_the_stream_is_of_another_device(const Libraries& libraries) {
  const Deferred port(libraries);
  hipdnn_rt::Context context(port.loaded);
  const hipdnn_rt::Stream other = port.device->create_stream(), own = port.device->create_stream();
  port.move(other.get(), 1);
  Call call(1);
  const std::string message = error_of<hipdnn_rt::InputError>([&] { context.enqueue(call.inputs, call.outputs, other.get()); });
  check::equal(message, "the stream is of GPU 1, the session runs on GPU 0");
  port.synchronize(other.get());
  check::that(call.is_untouched(), "nothing was queued");
  context.enqueue(call.inputs, call.outputs, own.get());
  port.synchronize(own.get());
  call.check_done();
}

void test_values_when_streams_share_a_pool(const Libraries& libraries) {
  const Deferred port(libraries);
  ContextPool pool(port.loaded);
  run_on_threads(4, [&](int t) {
    const hipdnn_rt::Stream stream = port.device->create_stream();
    std::mt19937 generator(static_cast<std::uint32_t>(t));
    for (int round = 0; round < 40; ++round) {
      const Memory memory = generator() % 4 == 0 ? Memory::host : Memory::device;
      const auto seed = static_cast<std::uint32_t>(generator() % 1000);
      const Call first(seed, memory), second(seed + 1, memory), own(seed + 2, memory);
      pool.enqueue(first.inputs, first.outputs, stream.get());
      pool.enqueue(second.inputs, second.outputs, stream.get());
      if (round % 3 == 0) pool.run(own.inputs, own.outputs);
      port.synchronize(stream.get());
      first.check_done();
      second.check_done();
      if (round % 3 == 0) own.check_done();
    }
  });
}

void test_steps_lie_in_their_run_when_timed(const Libraries& libraries) {
  const Deferred port(libraries);
  Context context(port.loaded);
  const Call call(5, Memory::host);
  const auto before = hipdnn_rt::Clock::now();
  const hipdnn_rt::TimedRun run = context.run_timed(call.inputs, call.outputs);
  const auto after = hipdnn_rt::Clock::now();
  call.check_done();
  check::equal(run.elapsed_us.size(), std::size_t{2});
  const std::chrono::duration<double, std::micro> steps(run.elapsed_us[0] + run.elapsed_us[1]);
  constexpr std::chrono::microseconds rounding(1);
  check::that(run.began >= before - rounding && run.began + steps <= after + rounding, "steps lie outside of their run");
}

}  // namespace

void add_stream_cases(check::Suite& suite, const Libraries& libraries) {
  suite.add("stream: returns at once when enqueued", [=] { test_returns_at_once_when_enqueued(libraries); });
  suite.add("stream: arena kept when the stream changes", [=] { test_arena_kept_when_the_stream_changes(libraries); });
  suite.add("stream: arena kept when threads have streams of one name",
            [=] { test_arena_kept_when_threads_have_streams_of_one_name(libraries); });
  suite.add("stream: arena kept when a run follows", [=] { test_arena_kept_when_a_run_follows(libraries); });
  suite.add("stream: waited for when destroyed", [=] { test_waited_for_when_destroyed(libraries); });
  suite.add("stream: nothing left running when a step fails", [=] { test_nothing_left_running_when_a_step_fails(libraries); });
  suite.add("stream: refused when the stream is of another device", [=] { test_refused_when_the_stream_is_of_another_device(libraries); });
  suite.add("stream: steps lie in their run when timed", [=] { test_steps_lie_in_their_run_when_timed(libraries); });
  suite.add("stream: values when streams share a pool", [=] { test_values_when_streams_share_a_pool(libraries); });
}

}  // namespace runtime_tests
