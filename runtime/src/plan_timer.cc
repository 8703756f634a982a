#include "hipdnn_rt/plan_timer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "hipdnn_rt/checked.h"
#include "hipdnn_rt/error.h"
#include "hipdnn_rt/variant_pack.h"

namespace hipdnn_rt {
namespace {

constexpr int kSeries = 5;
constexpr int kMostExecutions = 10;
constexpr int kColdExecutions = 11;
/// Copying as much as this from one place to another leaves nothing else in caches of up to twice the size, as most GPUs have.
constexpr std::size_t kFlushBytes = std::size_t{64} << 20;
/// Workspaces have hundreds of MiB, which are filled faster from the device's memory than from the host's.
constexpr std::size_t kPatternBytes = std::size_t{1} << 20;
/// A series is as long as this, if `kMostExecutions` are not shorter: long plans need no repetition to be measured.
constexpr double kSeriesMs = 20;

template <typename T>
std::optional<T> value_of(const DescriptorSpec& spec, hipdnnBackendAttributeName_t name) {
  const auto found = std::ranges::find(spec.attributes, name, &AttributeSpec::name);
  if (found == spec.attributes.end() || found->bytes.size() < sizeof(T)) return std::nullopt;
  T value{};
  std::memcpy(&value, found->bytes.data(), sizeof value);
  return value;
}

hipdnnDataType_t dtype_of(const Executable& executable, std::int64_t uid) {
  for (const DescriptorSpec& spec : executable.descriptors) {
    if (spec.type != HIPDNN_BACKEND_TENSOR_DESCRIPTOR || value_of<std::int64_t>(spec, HIPDNN_ATTR_TENSOR_UNIQUE_ID) != uid) continue;
    if (const auto dtype = value_of<std::int32_t>(spec, HIPDNN_ATTR_TENSOR_DATA_TYPE)) return static_cast<hipdnnDataType_t>(*dtype);
  }
  return HIPDNN_DATA_UINT8;
}

/// Where each operand lies in one block, and how large that is.
std::vector<std::size_t> lay_out(const Executable& executable, std::size_t alignment, std::size_t& total) {
  std::vector<std::size_t> offsets;
  total = 0;
  for (const Operand& operand : executable.operands) {
    const std::size_t multiple = std::max<std::size_t>(alignment, operand.alignment);
    const auto padded = checked_add(total, multiple - 1);
    const std::size_t offset = padded ? *padded / multiple * multiple : 0;
    const auto end = padded ? checked_add(offset, static_cast<std::size_t>(operand.extent_bytes)) : std::nullopt;
    if (!end) throw DeviceError(executable.name + ": operands are too large to be timed");
    offsets.push_back(offset);
    total = *end;
  }
  return offsets;
}

DeviceBuffer workspace_for(const Device& device, const Plan& plan) {
  return plan.workspace_bytes() > 0 ? device.allocate(plan.workspace_bytes()) : DeviceBuffer();
}

constexpr const char* what = "variant pack to time a plan";

}  // namespace

PlanTimer::PlanTimer(const Device& device, std::shared_ptr<const Handle> handle, const Executable& executable,
                     std::span<const ConstantBinding> constants)
    : device_(device), handle_(std::move(handle)), is_profiled_(has_profiling()) {
  constexpr std::size_t most_alignment = 4096;  // of a program's tensors
  std::size_t total = 0;
  const std::vector<std::size_t> offsets = lay_out(executable, device.port().arena_alignment, total);
  total = (total + most_alignment - 1) / most_alignment * most_alignment;
  memory_ = device.allocate(2 * total + most_alignment);
  if (!device.port().device_memory_is_host_memory) flush_ = device.allocate(2 * kFlushBytes);
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
  base_ = static_cast<std::byte*>(memory_.get()) + (most_alignment - address % most_alignment) % most_alignment;
  std::vector<std::byte> contents(2 * total);
  for (std::size_t i = 0; i < executable.operands.size(); ++i) {
    const Operand& operand = executable.operands[i];
    uids_.push_back(operand.uid);
    pointers_.push_back(base_ + offsets[i]);
    other_pointers_.push_back(base_ + total + offsets[i]);
    const auto constant = std::ranges::find(constants, operand.uid, &ConstantBinding::uid);
    // The ABI's pointers are not const; no operation writes a constant.
    if (constant != constants.end()) pointers_.back() = other_pointers_.back() = const_cast<void*>(constant->pointer);
    const hipdnnDataType_t dtype = dtype_of(executable, operand.uid);
    const auto bytes = static_cast<std::size_t>(operand.extent_bytes);
    if (operand.is_output && bytes > 0) {
      results_.push_back({dtype, offsets[i], bytes});
    } else {
      fill_operand(std::span(contents).subspan(offsets[i], bytes), dtype, 2 * i);
      fill_operand(std::span(contents).subspan(total + offsets[i], bytes), dtype, 2 * i + 1);
    }
  }
  const HipApi& hip = device.library().hip();
  check(hip, hip.memcpy_async(base_, contents.data(), contents.size(), hipMemcpyHostToDevice, nullptr), "hipMemcpyAsync");
  check(hip, hip.stream_synchronize(nullptr), "hipStreamSynchronize");
}

void PlanTimer::run(const Plan& plan, const Descriptor& pack, int count) {
  const HipdnnApi& api = device_.library().hipdnn();
  for (int i = 0; i < count; ++i) {
    check(api, api.execute(handle_->get(), plan.descriptor().get(), pack.get()), "hipdnnBackendExecute(plan of " + plan.engine_name() + ")");
  }
}

void PlanTimer::fill(void* memory, std::size_t bytes, std::byte value) {
  const HipApi& hip = device_.library().hip();
  DeviceBuffer& pattern = patterns_[value];
  if (pattern.get() == nullptr) {
    pattern = device_.allocate(kPatternBytes);
    const std::vector<std::byte> contents(kPatternBytes, value);
    check(hip, hip.memcpy_async(pattern.get(), contents.data(), contents.size(), hipMemcpyHostToDevice, nullptr), "hipMemcpyAsync");
    check(hip, hip.stream_synchronize(nullptr), "hipStreamSynchronize");
  }
  for (std::size_t done = 0; done < bytes; done += kPatternBytes) {
    const std::size_t part = std::min(kPatternBytes, bytes - done);
    check(hip, hip.memcpy_async(static_cast<std::byte*>(memory) + done, pattern.get(), part, hipMemcpyDeviceToDevice, nullptr), "hipMemcpyAsync");
  }
}

double PlanTimer::elapsed_ms(const Plan& plan, const Descriptor& pack, int count) {
  const auto queue = [&] { run(plan, pack, count); };
  return is_profiled_ ? profiled_ms(queue) : ms_between_events(queue);
}

bool PlanTimer::has_profiling() const {
  try {
    profiled_ms([] {});
    return true;
  } catch (const DeviceError& error) {
    // Older libraries have no such descriptor, or another one under its number.
    device_.log(HIPDNN_SEV_INFO, std::string("plans are timed by events: ") + error.what());
    return false;
  }
}

double PlanTimer::profiled_ms(const std::function<void()>& queue) const {
  constexpr const char* timer_name = "profiling control";
  Descriptor timer(device_.shared_library(), HIPDNN_BACKEND_PROFILING_CONTROL_EXT);
  const hipdnnHandle_t raw = handle_->get();
  const bool yes = true;
  timer.set(HIPDNN_ATTR_PROFILING_HANDLE_EXT, HIPDNN_TYPE_HANDLE, 1, &raw, timer_name);
  timer.set(HIPDNN_ATTR_PROFILING_START_EXT, HIPDNN_TYPE_BOOLEAN, 1, &yes, timer_name);
  queue();
  timer.set(HIPDNN_ATTR_PROFILING_STOP_EXT, HIPDNN_TYPE_BOOLEAN, 1, &yes, timer_name);
  timer.finalize(timer_name);
  // Finalizing waits, too; the memory that plans run on must not depend on that.
  check(device_.library().hip(), device_.library().hip().stream_synchronize(nullptr), "hipStreamSynchronize");
  const HipdnnApi& api = device_.library().hipdnn();
  float elapsed = 0;
  std::int64_t count = 0;
  check(api, api.get_attribute(timer.get(), HIPDNN_ATTR_PROFILING_ELAPSED_MS_EXT, HIPDNN_TYPE_FLOAT, 1, &count, &elapsed),
        "hipdnnBackendGetAttribute(ELAPSED_MS)");
  return static_cast<double>(elapsed);
}

double PlanTimer::ms_between_events(const std::function<void()>& queue) const {
  const HipApi& hip = device_.library().hip();
  const Event start = device_.create_event();
  const Event stop = device_.create_event();
  check(hip, hip.event_record(start.get(), nullptr), "hipEventRecord");
  queue();
  check(hip, hip.event_record(stop.get(), nullptr), "hipEventRecord");
  check(hip, hip.event_synchronize(stop.get()), "hipEventSynchronize");
  float elapsed = 0;
  check(hip, hip.event_elapsed_time(&elapsed, start.get(), stop.get()), "hipEventElapsedTime");
  return static_cast<double>(elapsed);
}

std::vector<Answer> PlanTimer::answer(const Plan& plan, const Before& before) {
  const DeviceBuffer workspace = workspace_for(device_, plan);
  const Descriptor pack = make_variant_pack(device_.shared_library(), uids_, pointers_, workspace.get(), what);
  const Descriptor other = make_variant_pack(device_.shared_library(), uids_, other_pointers_, workspace.get(), what);
  const HipApi& hip = device_.library().hip();
  const auto copy = [&](void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
    check(hip, hip.memcpy_async(to, from, bytes, kind, nullptr), "hipMemcpyAsync");
  };
  std::vector<Answer> answers;
  try {
    for (const Result& result : results_) fill(base_ + result.offset, result.bytes, std::byte{0});
    fill(workspace.get(), plan.workspace_bytes(), before.workspace);
    if (before.other_operands) run(plan, other, 1);
    run(plan, pack, 1);
    for (const Result& result : results_) {
      Answer& read = answers.emplace_back(Answer{result.dtype, std::vector<std::byte>(result.bytes)});
      copy(read.bytes.data(), base_ + result.offset, result.bytes, hipMemcpyDeviceToHost);
    }
    check(hip, hip.stream_synchronize(nullptr), "hipStreamSynchronize");
  } catch (const DeviceError&) {
    hip.stream_synchronize(nullptr);  // what is queued still uses the memory
    throw;
  }
  return answers;
}

void PlanTimer::run_at(const Plan& plan, std::span<const Shape> overrides) {
  const DeviceBuffer workspace = workspace_for(device_, plan);
  const Descriptor pack = make_variant_pack(device_.shared_library(), uids_, pointers_, workspace.get(), what, overrides);
  const HipApi& hip = device_.library().hip();
  try {
    run(plan, pack, 1);
    check(hip, hip.stream_synchronize(nullptr), "hipStreamSynchronize");
  } catch (const DeviceError&) {
    hip.stream_synchronize(nullptr);  // what is queued still uses the memory
    throw;
  }
}

double PlanTimer::cold_us(const Plan& plan, const Descriptor& pack) {
  const HipApi& hip = device_.library().hip();
  std::array<double, kColdExecutions> times{};
  for (double& time : times) {
    check(hip, hip.memcpy_async(static_cast<std::byte*>(flush_.get()) + kFlushBytes, flush_.get(), kFlushBytes, hipMemcpyDeviceToDevice, nullptr),
          "hipMemcpyAsync");
    time = 1e3 * elapsed_ms(plan, pack, 1);
  }
  std::ranges::sort(times);
  return times[kColdExecutions / 2];
}

double PlanTimer::time_us(const Plan& plan) {
  const DeviceBuffer workspace = workspace_for(device_, plan);
  const Descriptor pack = make_variant_pack(device_.shared_library(), uids_, pointers_, workspace.get(), what);
  try {
    elapsed_ms(plan, pack, 1);  // what only the first execution does
    if (flush_.get() != nullptr) return cold_us(plan, pack);
    const double once_ms = elapsed_ms(plan, pack, 1);
    const int executions = std::clamp(static_cast<int>(kSeriesMs / std::max(once_ms, 1e-3)), 1, kMostExecutions);
    std::array<double, kSeries> times{};
    for (double& time : times) time = 1e3 * elapsed_ms(plan, pack, executions) / executions;
    std::ranges::sort(times);
    return times[kSeries / 2];
  } catch (const DeviceError&) {
    // What is queued still uses the memory. A failure of this call tells nothing new.
    device_.library().hip().stream_synchronize(nullptr);
    throw;
  }
}

}  // namespace hipdnn_rt
