// The host library behind streams that work on their own time: each stream is a thread with a queue, and host code that does not wait
// for it is ahead of it. Everything not here is the host library's, found through the dependency on it.
#include "deferred_port.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "hipdnn_backend.h"

#define DEFERRED_EXPORT __attribute__((visibility("default")))

/// Runs tasks in order.
struct ihipStream_t {
  int device = 0;
  ~ihipStream_t() {
    {
      const std::lock_guard lock(mutex);
      is_closing = true;
    }
    changed.notify_all();
  }

  void push(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex);
      if (recording != nullptr) {
        recording->push_back(std::move(task));
        return;
      }
      tasks.push_back(std::move(task));
    }
    changed.notify_all();
  }

  void allow(int count) {
    {
      const std::lock_guard lock(mutex);
      allowance = count;
    }
    changed.notify_all();
  }

  void wait_until_idle() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return tasks.empty(); });
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return is_closing || (!tasks.empty() && allowance > 0); });
      if (tasks.empty()) return;
      if (allowance != std::numeric_limits<int>::max()) --allowance;
      const std::function<void()>& first = tasks.front();  // which stays where it is as others are pushed
      lock.unlock();
      first();
      lock.lock();
      tasks.pop_front();
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  /// The first one is running or next.
  std::deque<std::function<void()>> tasks;
  int allowance = std::numeric_limits<int>::max();
  /// Where tasks are kept that are recorded and not run.
  std::unique_ptr<std::vector<std::function<void()>>> recording;
  bool is_closing = false;
  std::jthread worker{[this] { work(); }};
};

struct ihipGraph {
  std::vector<std::function<void()>> tasks;
};

struct hipGraphExec {
  std::vector<std::function<void()>> tasks;
};

/// How often an event has been recorded by the host, and how far the streams have got.
struct EventState {
  void wait_for(int record) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached >= record; });
  }

  std::mutex mutex;
  std::condition_variable changed;
  int recorded = 0;
  int reached = 0;
  std::chrono::steady_clock::time_point time;
};

struct ihipEvent_t {
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

namespace {

/// Executions that still succeed.
std::atomic<int>& successes_left() {
  static std::atomic<int> left{std::numeric_limits<int>::max()};
  return left;
}

std::atomic<int>& graphs_made() {
  static std::atomic<int> count{0};
  return count;
}

std::atomic<int>& graphs_launched() {
  static std::atomic<int> count{0};
  return count;
}

std::atomic<int>& waiting_kernels() {
  static std::atomic<int> count{0};
  return count;
}

std::atomic<int>& losses() {
  static std::atomic<int> count{0};
  return count;
}

/// Held by the work that runs on the device, and by its loss.
std::shared_mutex& device_mutex() {
  static std::shared_mutex mutex;
  return mutex;
}

/// Work that the device does, unless it has been lost meanwhile.
std::function<void()> on_device(std::function<void()> work) {
  return [work = std::move(work), made = losses().load()] {
    const std::shared_lock lock(device_mutex());
    if (losses() == made) work();
  };
}

ihipStream_t& queue_of(hipStream_t stream) {
  // The default stream lives until the process ends, whatever is queued.
  static ihipStream_t& default_stream = *new ihipStream_t;
  if (stream == nullptr) return default_stream;
  if (stream != hipStreamPerThread) return *stream;
  thread_local ihipStream_t mine;
  return mine;
}

template <typename Function>
Function* next(const char* symbol) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, symbol));
}

template <typename Element>
std::vector<Element> read(hipdnnBackendDescriptor_t pack, hipdnnBackendAttributeName_t name, hipdnnBackendAttributeType_t type) {
  std::int64_t count = 0;
  hipdnnBackendGetAttribute(pack, name, type, 0, &count, nullptr);
  std::vector<Element> elements(static_cast<std::size_t>(count));
  if (count > 0) hipdnnBackendGetAttribute(pack, name, type, count, &count, elements.data());
  return elements;
}

/// Arguments of the functions of modules loaded so far; a launch has to copy them.
std::map<hipFunction_t, std::size_t>& argument_counts() {
  static std::map<hipFunction_t, std::size_t> counts;
  return counts;
}
std::mutex& argument_counts_mutex() {
  static std::mutex mutex;
  return mutex;
}

using Pack = std::unique_ptr<std::remove_pointer_t<hipdnnBackendDescriptor_t>, decltype(&hipdnnBackendDestroyDescriptor)>;

/// A pack of the same contents: the caller may destroy its own as soon as the call has returned.
std::shared_ptr<Pack> copy_of(hipdnnBackendDescriptor_t pack) {
  const auto set = [](hipdnnBackendDescriptor_t to, auto name, auto type, const auto& elements) {
    if (!elements.empty()) hipdnnBackendSetAttribute(to, name, type, static_cast<std::int64_t>(elements.size()), elements.data());
  };
  hipdnnBackendDescriptor_t copy = nullptr;
  hipdnnBackendCreateDescriptor(HIPDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &copy);
  auto owner = std::make_shared<Pack>(copy, &hipdnnBackendDestroyDescriptor);
  set(copy, HIPDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, HIPDNN_TYPE_INT64,
      read<std::int64_t>(pack, HIPDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, HIPDNN_TYPE_INT64));
  set(copy, HIPDNN_ATTR_VARIANT_PACK_DATA_POINTERS, HIPDNN_TYPE_VOID_PTR,
      read<void*>(pack, HIPDNN_ATTR_VARIANT_PACK_DATA_POINTERS, HIPDNN_TYPE_VOID_PTR));
  set(copy, HIPDNN_ATTR_VARIANT_PACK_WORKSPACE, HIPDNN_TYPE_VOID_PTR,
      read<void*>(pack, HIPDNN_ATTR_VARIANT_PACK_WORKSPACE, HIPDNN_TYPE_VOID_PTR));
  hipdnnBackendFinalize(copy);
  return owner;
}

}  // namespace

extern "C" {

DEFERRED_EXPORT void deferred_allow(hipStream_t stream, int tasks) { queue_of(stream).allow(tasks); }
DEFERRED_EXPORT void deferred_move(hipStream_t stream, int device) { stream->device = device; }
DEFERRED_EXPORT void deferred_release(hipStream_t stream) { queue_of(stream).allow(std::numeric_limits<int>::max()); }
DEFERRED_EXPORT void deferred_count_graphs(int* made, int* launched) {
  *made = graphs_made().exchange(0);
  *launched = graphs_launched().exchange(0);
}
DEFERRED_EXPORT int deferred_count_waiting_kernels() { return waiting_kernels().exchange(0); }
DEFERRED_EXPORT void deferred_lose() {
  const std::unique_lock lock(device_mutex());
  ++losses();
}
DEFERRED_EXPORT void deferred_fail_after(int successes) { successes_left() = successes; }

DEFERRED_EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned int) {
  *stream = new ihipStream_t;
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipStreamGetDevice(hipStream_t stream, int* device) {
  *device = queue_of(stream).device;
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipStreamDestroy(hipStream_t stream) {
  delete stream;
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipStreamSynchronize(hipStream_t stream) {
  queue_of(stream).wait_until_idle();
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int) {
  queue_of(stream).push([state = event->state, record = event->state->recorded] { state->wait_for(record); });
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode) {
  if (stream == nullptr || stream == hipStreamPerThread || stream->recording != nullptr) return hipErrorInvalidValue;
  stream->recording = std::make_unique<std::vector<std::function<void()>>>();
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
  if (stream->recording == nullptr) return hipErrorInvalidValue;
  *graph = new ihipGraph{std::move(*stream->recording)};
  stream->recording.reset();
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* executable, hipGraph_t graph, unsigned long long) {
  ++graphs_made();
  *executable = new hipGraphExec{graph->tasks};
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipGraphLaunch(hipGraphExec_t executable, hipStream_t stream) {
  ++graphs_launched();
  queue_of(stream).push([tasks = executable->tasks] {
    for (const auto& task : tasks) task();
  });
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipGraphExecDestroy(hipGraphExec_t executable) {
  delete executable;
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipGraphDestroy(hipGraph_t graph) {
  delete graph;
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned int) {
  *event = new ihipEvent_t;
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  queue_of(stream).push([state = event->state, record = ++event->state->recorded] {
    {
      const std::lock_guard lock(state->mutex);
      state->reached = record;
      state->time = std::chrono::steady_clock::now();
    }
    state->changed.notify_all();
  });
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipEventSynchronize(hipEvent_t event) {
  event->state->wait_for(event->state->recorded);
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipEventElapsedTime(float* elapsed_ms, hipEvent_t start, hipEvent_t stop) {
  const std::scoped_lock lock(start->state->mutex, stop->state->mutex);
  *elapsed_ms = std::chrono::duration<float, std::milli>(stop->state->time - start->state->time).count();
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipEventDestroy(hipEvent_t event) {
  delete event;
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipMemcpyAsync(void* destination, const void* source, size_t bytes, hipMemcpyKind kind, hipStream_t stream) {
  static const auto copy = next<decltype(hipMemcpyAsync)>("hipMemcpyAsync");
  queue_of(stream).push(on_device([=] { copy(destination, source, bytes, kind, nullptr); }));
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  static const auto load = next<decltype(hipModuleLoadData)>("hipModuleLoadData");
  static const auto find = next<decltype(hipModuleGetFunction)>("hipModuleGetFunction");
  const hipError_t status = load(module, image);
  if (status != hipSuccess) return status;
  const auto json = nlohmann::json::parse(static_cast<const char*>(image));
  hipFunction_t function = nullptr;
  find(&function, *module, json["function"].get_ref<const std::string&>().c_str());
  const std::lock_guard lock(argument_counts_mutex());
  argument_counts()[function] = json["tensors"].size();
  return hipSuccess;
}

DEFERRED_EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                                                 unsigned int, unsigned int, hipStream_t stream, void** kernel_params, void**) {
  static const auto launch = next<decltype(hipModuleLaunchKernel)>("hipModuleLaunchKernel");
  std::vector<void*> arguments;
  {
    const std::lock_guard lock(argument_counts_mutex());
    for (std::size_t i = 0; i < argument_counts()[function]; ++i) arguments.push_back(*static_cast<void**>(kernel_params[i]));
  }
  queue_of(stream).push(on_device([=]() mutable {
    std::vector<void*> addresses;
    for (void*& argument : arguments) addresses.push_back(&argument);
    launch(function, 1, 1, 1, 1, 1, 1, 0, nullptr, addresses.data(), nullptr);
  }));
  return hipSuccess;
}

/// The port cuda's extension; the streams here run one kernel after the other all the same.
DEFERRED_EXPORT hipError_t hipdnnCudaLaunchWaitingKernel_ext(hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                                             unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                                             unsigned int shared_memory_bytes, hipStream_t stream, void** kernel_params,
                                                             void** extra) {
  ++waiting_kernels();
  return hipModuleLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_memory_bytes, stream, kernel_params, extra);
}

DEFERRED_EXPORT hipdnnStatus_t hipdnnBackendExecute(hipdnnHandle_t handle, hipdnnBackendDescriptor_t plan, hipdnnBackendDescriptor_t pack) {
  static const auto execute = next<decltype(hipdnnBackendExecute)>("hipdnnBackendExecute");
  if (successes_left().load() != std::numeric_limits<int>::max() && successes_left().fetch_sub(1) <= 0) {
    return HIPDNN_STATUS_EXECUTION_FAILED;
  }
  hipStream_t stream = nullptr;
  hipdnnGetStream(handle, &stream);
  queue_of(stream).push(on_device([=, copy = copy_of(pack)] { execute(handle, plan, copy->get()); }));
  return HIPDNN_STATUS_SUCCESS;
}

}  // extern "C"
