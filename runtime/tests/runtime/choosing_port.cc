// A port whose engines take every graph, with times of their own: the front of the ports with engines that only advance a clock. HIP's functions
// are the host library's, found through the dependency on it, but for events, which read that clock, and copies.
#include "choosing_port.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>

#include "frontend/engine.h"
#include "frontend/export.h"
#include "frontend/status.h"
#include "hip_runtime_abi.h"

struct ihipEvent_t {
  long recorded_us = 0;
};

namespace {

/// Of the graph of the tests: x, y = relu(x).
constexpr int relu_elements = 16;

/// A thread's plans take no time of another's, whose device they do not run on.
thread_local long clock_us = 0;
std::atomic<int> built{0}, restored{0}, executed{0};
std::atomic<bool> can_restore{true};
std::atomic<int> most_wrong{0};
std::atomic<int> failing_status{0}, failing_builds{0};

constexpr std::array<std::string_view, 2> policies{"TEST_RULES", "TEST_ORDER"};

/// As hipDNN's two-call functions do: how long a text is with its end, or the text.
void tell(std::string_view text, char* to, std::size_t* length) {
  if (to != nullptr) to[text.copy(to, *length - 1)] = '\0';
  *length = text.size() + 1;
}

/// What a plan writes: what the graph says, something else, something else each time, something else right after it had other operands,
/// or something else in a workspace that is not zero.
enum class Answers { right, wrong, changing, stale, needs_zeros };

struct Behaviour {
  long time_us;
  bool is_broken = false;
  Answers answers = Answers::right;
  /// Position among the engines.
  int number = 0;
};

class TimedPlan final : public hipdnn_port::Plan {
 public:
  TimedPlan(std::vector<std::int64_t> uids, Behaviour behaviour) : behaviour_(behaviour) {
    uids_ = std::move(uids);
    workspace_bytes_ = 64;
  }
  std::string describe() const override { return std::to_string(behaviour_.time_us) + " us"; }
  void execute(void* const* pointers, void* workspace, const hipdnn_port::Launch&) const override {
    if (behaviour_.is_broken) throw std::runtime_error("this engine does not run");
    const auto* x = static_cast<const float*>(pointers[0]);
    ++executed;
    const bool is_relu = is_right(++executions_, pointers[0], workspace);
    std::transform(x, x + relu_elements, static_cast<float*>(pointers[1]), [&](float value) { return is_relu ? std::max(value, 0.0F) : 7.0F; });
    last_operand_ = pointers[0];
    clock_us += behaviour_.time_us;
  }
  std::string serialize() const override {
    std::string text = std::to_string(behaviour_.time_us);
    for (const std::int64_t uid : uids_) text.append(" ").append(std::to_string(uid));
    return text;
  }

 private:
  bool is_right(int number, const void* operand, const void* workspace) const {
    if (behaviour_.number < most_wrong) return false;
    switch (behaviour_.answers) {
      case Answers::right: return true;
      case Answers::wrong: return false;
      case Answers::changing: return number % 4 < 2;
      case Answers::stale: return last_operand_ == nullptr || last_operand_ == operand;
      case Answers::needs_zeros: return *static_cast<const char*>(workspace) == 0;
    }
    return false;
  }

  Behaviour behaviour_;
  mutable int executions_ = 0;
  mutable const void* last_operand_ = nullptr;
};

class TimedEngine final : public hipdnn_port::Engine {
 public:
  TimedEngine(std::string_view name, Behaviour behaviour) : name_(name), behaviour_(behaviour) {}
  void count(int number) { behaviour_.number = number; }

  std::string_view name() const override { return name_; }
  std::optional<std::string> refuses(const hipdnn_port::Graph&) const override { return std::nullopt; }
  std::unique_ptr<hipdnn_port::Plan> build(const hipdnn_port::Graph& graph, const hipdnn_port::PlanOptions& options) const override {
    if (failing_builds > 0 && failing_builds-- > 0) hipdnn_port::fail(static_cast<hipdnnStatus_t>(failing_status.load()), "as the test asks");
    if (behaviour_.time_us == 0) throw std::runtime_error("this engine builds nothing");
    ++built;
    Behaviour behaviour = behaviour_;
    if (options.detail) behaviour.time_us /= *std::static_pointer_cast<const long>(options.detail);
    std::vector<std::int64_t> uids;
    for (const hipdnn_port::Tensor& tensor : graph.tensors) {
      if (tensor.has_pointer()) uids.push_back(tensor.uid);
    }
    return std::make_unique<TimedPlan>(std::move(uids), behaviour);
  }
  std::unique_ptr<hipdnn_port::Plan> restore(std::string_view serialized, const hipdnn_port::PlanOptions&) const override {
    if (!can_restore) throw std::runtime_error("this library takes nothing back");
    ++restored;
    std::vector<std::int64_t> numbers;
    for (std::size_t at = 0; at < serialized.size(); at = std::min(serialized.find(' ', at), serialized.size() - 1) + 1) {
      numbers.push_back(std::stol(std::string(serialized.substr(at))));
    }
    return std::make_unique<TimedPlan>(std::vector<std::int64_t>(numbers.begin() + 1, numbers.end()), Behaviour{numbers.front()});
  }

 private:
  std::string_view name_;
  Behaviour behaviour_;
};

std::array<TimedEngine, 11>& timed_engines() {
  static std::array<TimedEngine, 11> all{{{"TEST_NOTHING", {0}},
                                               {"TEST_SLOW", {100}},
                                               {"TEST_TILED", {80}},
                                               {"TEST_BROKEN", {1, true}},
                                               {"TEST_LAST", {5}},
                                               {"TEST_WRONG", {2, false, Answers::wrong}},
                                               {"TEST_CHANGING", {1, false, Answers::changing}},
                                               {"TEST_STALE", {1, false, Answers::stale}},
                                               {"TEST_CLEAN", {1, false, Answers::needs_zeros}},
                                               {"TEST_LATE", {6}},
                                               {"TEST_NEVER", {1}}}};
  return all;
}

}  // namespace

namespace hipdnn_port {

std::string_view library_name() { return "choosing"; }
const char* library_version() { return "1.2.3.4"; }
bool uses_constants() { return true; }
std::shared_ptr<void> make_vendor_handle() { return nullptr; }

const std::vector<const Engine*>& engines() {
  static const std::vector<const Engine*> all = [] {
    std::vector<const Engine*> pointers;
    for (TimedEngine& engine : timed_engines()) {
      engine.count(static_cast<int>(pointers.size()));
      pointers.push_back(&engine);
    }
    return pointers;
  }();
  return all;
}

std::vector<Proposal> rank(const Graph&, const PlanOptions&, std::string&) {
  std::vector<Proposal> proposals;
  for (const Engine* engine : engines()) {
    if (engine->name() == "TEST_LATE") {
      for (int i = 0; i < 3; ++i) proposals.push_back({engine, {}, nullptr});
    } else if (engine->name() == "TEST_TILED") {
      for (const long tile : {1L, 4L}) proposals.push_back({engine, {{"TILE", tile}}, std::make_shared<const long>(tile)});
    } else {
      proposals.push_back({engine, {}, nullptr});
    }
  }
  return proposals;
}

}  // namespace hipdnn_port

extern "C" {

HIPDNN_PORT_EXPORT void choosing_take_counts(ChoosingCounts* counts) {
  *counts = {built.exchange(0), restored.exchange(0), executed.exchange(0)};
}

HIPDNN_PORT_EXPORT void choosing_let_restore(bool is_possible) { can_restore = is_possible; }

HIPDNN_PORT_EXPORT void choosing_be_wrong(int engines) { most_wrong = engines; }

HIPDNN_PORT_EXPORT void choosing_fail_builds(int status, int count) {
  failing_status = status;
  failing_builds = count;
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnGetHeuristicPolicyCount_ext(hipdnnHandle_t, size_t* count) {
  *count = policies.size();
  return HIPDNN_STATUS_SUCCESS;
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnGetHeuristicPolicyInfo_ext(hipdnnHandle_t, size_t index, int64_t* id, char* name, size_t* name_length,
                                                                  char* plugin, size_t* plugin_length, char* plugin_version,
                                                                  size_t* plugin_version_length, char* api_version,
                                                                  size_t* api_version_length) {
  if (index >= policies.size()) return HIPDNN_STATUS_BAD_PARAM_OUT_OF_BOUND;
  *id = hipdnn_port::engine_id(policies[index]);
  tell(policies[index], name, name_length);
  tell("choosing", plugin, plugin_length);
  tell("1.0", plugin_version, plugin_version_length);
  tell("1.1", api_version, api_version_length);
  return HIPDNN_STATUS_SUCCESS;
}

/// Emptying caches, by a copy of many MiB, does nothing to that clock: the ends of such a copy show whether there is room for it.
HIPDNN_PORT_EXPORT hipError_t hipMemcpyAsync(void* destination, const void* source, size_t bytes, hipMemcpyKind kind, hipStream_t) {
  constexpr std::size_t most = std::size_t{16} << 20, end = 4096;
  const auto copy = [&](std::size_t from, std::size_t count) {
    if (count > 0) std::memcpy(static_cast<char*>(destination) + from, static_cast<const char*>(source) + from, count);
  };
  const bool is_for_caches = kind == hipMemcpyDeviceToDevice && bytes > most;
  copy(0, is_for_caches ? end : bytes);
  if (is_for_caches) copy(bytes - end, end);
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned int) {
  *event = new ihipEvent_t;
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipEventDestroy(hipEvent_t event) {
  delete event;
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t) {
  event->recorded_us = clock_us;
  return hipSuccess;
}

HIPDNN_PORT_EXPORT hipError_t hipEventSynchronize(hipEvent_t) { return hipSuccess; }

HIPDNN_PORT_EXPORT hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned int) { return hipSuccess; }

HIPDNN_PORT_EXPORT hipError_t hipEventElapsedTime(float* elapsed_ms, hipEvent_t start, hipEvent_t stop) {
  *elapsed_ms = static_cast<float>(stop->recorded_us - start->recorded_us) / 1000;
  return hipSuccess;
}

}  // extern "C"
