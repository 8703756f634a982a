#include "plan/plan_timer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "device/error.h"
#include "plan/graph_reading.h"
#include "plan/variant_pack.h"
#include "program/checked.h"

namespace hipdnn_rt {
namespace {

constexpr int kSeries = 5;
constexpr int kMostExecutions = 10;
constexpr int kColdExecutions = 11;
/// Copying as much as this from one place to another leaves nothing else in caches of up to twice the size, as most GPUs have.
constexpr std::size_t kFlushBytes = std::size_t{64} << 20;
/// Of what fills memory, of which workspaces have hundreds of MiB.
/// No multiple of what dims and strides are.
constexpr std::size_t kPatternBytes = std::size_t{8} * 131'101;
/// A series is as long as this, if `kMostExecutions` are not shorter: long plans need no repetition to be measured.
constexpr double kSeriesMs = 20;

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

std::size_t total_bytes(std::span<const Piece> pieces) {
  std::size_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.bytes;
  return bytes;
}

DeviceBuffer workspace_for(const Device& device, const Plan& plan) {
  return plan.workspace_bytes() > 0 ? device.allocate(plan.workspace_bytes()) : DeviceBuffer();
}

constexpr std::size_t most_alignment = 4096;  // of a program's tensors
constexpr const char* what = "variant pack to time a plan";

}  // namespace

PlanTimer::PlanTimer(const Device& device, std::shared_ptr<const Handle> handle, const Executable& executable,
                     std::span<const ConstantBinding> constants)
    : device_(device), handle_(std::move(handle)), constants_(constants.begin(), constants.end()) {
  const std::map<std::int64_t, hipdnnDataType_t> dtypes = dtypes_of(executable);
  const std::vector<std::size_t> offsets = lay_out(executable, device.port().arena_alignment, block_bytes_);
  block_bytes_ = (block_bytes_ + most_alignment - 1) / most_alignment * most_alignment;
  block_bytes_ += most_alignment;
  add_block(0);
  for (std::size_t i = 0; i < executable.operands.size(); ++i) {
    const Operand& operand = executable.operands[i];
    uids_.push_back(operand.uid);
    offsets_.push_back(offsets[i]);
    pointers_.push_back(bases_[0] + offsets[i]);
    const auto constant = std::ranges::find(constants, operand.uid, &ConstantBinding::uid);
    // The ABI's pointers are not const; no operation writes a constant.
    if (constant != constants.end()) pointers_.back() = const_cast<void*>(constant->pointer);
    const Place place{operand.uid, dtypes.at(operand.uid), offsets[i], static_cast<std::size_t>(operand.extent_bytes)};
    (operand.is_output ? results_ : inputs_).push_back(place);
  }
  fill_block(0);
}

PlanTimer::Pattern PlanTimer::make_pattern(std::vector<std::byte> contents) const {
  const HipApi& hip = device_.library().hip();
  Pattern pattern{std::move(contents), device_.allocate(kPatternBytes)};
  check(hip, hip.memcpy_async(pattern.device.get(), pattern.host.data(), kPatternBytes, hipMemcpyHostToDevice, nullptr), "hipMemcpyAsync");
  check(hip, hip.stream_synchronize(nullptr), "hipStreamSynchronize");
  return pattern;
}

const PlanTimer::Pattern& PlanTimer::random_pattern(hipdnnDataType_t dtype) {
  Pattern& pattern = numbers_[dtype];
  if (pattern.host.empty()) {
    std::vector<std::byte> contents(kPatternBytes);
    fill_operand(contents, dtype, 1);
    pattern = make_pattern(std::move(contents));
  }
  return pattern;
}

std::size_t PlanTimer::phase_of(std::int64_t uid, std::size_t block) const {
  constexpr std::size_t apart = std::size_t{8} * 30'011;  // operands of one type do not look alike
  return (2 * static_cast<std::size_t>(uid) + block) * apart % kPatternBytes;
}

void PlanTimer::add_block(std::size_t block) {
  memory_[block] = device_.allocate(block_bytes_);
  const auto address = reinterpret_cast<std::uintptr_t>(memory_[block].get());
  bases_[block] = static_cast<std::byte*>(memory_[block].get()) + (most_alignment - address % most_alignment) % most_alignment;
}

void PlanTimer::add_other_operands() {
  add_block(1);
  fill_block(1);
  for (std::size_t i = 0; i < uids_.size(); ++i) {
    const bool is_constant = std::ranges::find(constants_, uids_[i], &ConstantBinding::uid) != constants_.end();
    other_pointers_.push_back(is_constant ? pointers_[i] : bases_[1] + offsets_[i]);
  }
}

void PlanTimer::fill_block(std::size_t block) {
  for (const Place& input : inputs_) {
    spread(random_pattern(input.dtype), phase_of(input.uid, block), bases_[block] + input.offset, input.bytes);
  }
  check(device_.library().hip(), device_.library().hip().stream_synchronize(nullptr), "hipStreamSynchronize");
}

void PlanTimer::spread(const Pattern& pattern, std::size_t phase, void* memory, std::size_t bytes) {
  const HipApi& hip = device_.library().hip();
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t at = (phase + done) % kPatternBytes, part = std::min(kPatternBytes - at, bytes - done);
    const std::byte* from = static_cast<const std::byte*>(pattern.device.get()) + at;
    check(hip, hip.memcpy_async(static_cast<std::byte*>(memory) + done, from, part, hipMemcpyDeviceToDevice, nullptr), "hipMemcpyAsync");
    done += part;
  }
}

std::vector<Piece> PlanTimer::pieces_of(const Pieces& pieces, const Place& place) const {
  const auto found = pieces.find(place.uid);
  return found == pieces.end() ? std::vector<Piece>{{0, place.bytes}} : found->second;
}

OperandContents PlanTimer::contents(const Pieces& pieces) {
  const HipApi& hip = device_.library().hip();
  OperandContents found;
  for (const Place& input : inputs_) {
    const auto constant = std::ranges::find(constants_, input.uid, &ConstantBinding::uid);
    const std::vector<Piece> parts = pieces_of(pieces, input);
    std::vector<std::byte>& contents = found[input.uid];
    contents.resize(total_bytes(parts));
    std::size_t to = 0;
    for (const Piece& piece : parts) {
      if (constant != constants_.end()) {
        const auto* from = static_cast<const std::byte*>(constant->pointer) + piece.offset;
        check(hip, hip.memcpy_async(&contents[to], from, piece.bytes, hipMemcpyDeviceToHost, nullptr), "hipMemcpyAsync");
      } else {
        const std::vector<std::byte>& pattern = random_pattern(input.dtype).host;
        const std::size_t phase = phase_of(input.uid, 0) + piece.offset;
        for (std::size_t i = 0; i < piece.bytes;) {
          const std::size_t at = (phase + i) % kPatternBytes, part = std::min(kPatternBytes - at, piece.bytes - i);
          std::memcpy(&contents[to + i], &pattern[at], part);
          i += part;
        }
      }
      to += piece.bytes;
    }
  }
  check(hip, hip.stream_synchronize(nullptr), "hipStreamSynchronize");
  return found;
}

void PlanTimer::run(const Plan& plan, const Descriptor& pack, int count) {
  const HipdnnApi& api = device_.library().hipdnn();
  for (int i = 0; i < count; ++i) {
    check(api, api.execute(handle_->get(), plan.descriptor().get(), pack.get()), "hipdnnBackendExecute(plan of " + plan.engine_name() + ")");
  }
}

void PlanTimer::fill(void* memory, std::size_t bytes, std::byte value) {
  Pattern& pattern = bytes_[value];
  if (pattern.host.empty()) pattern = make_pattern(std::vector<std::byte>(kPatternBytes, value));
  spread(pattern, 0, memory, bytes);
}

double PlanTimer::elapsed_ms(const Plan& plan, const Descriptor& pack, int count) {
  const auto queue = [&] { run(plan, pack, count); };
  return has_profiling() ? profiled_ms(queue) : ms_between_events(queue);
}

bool PlanTimer::has_profiling() {
  if (is_profiled_) return *is_profiled_;
  try {
    profiled_ms([] {});
    is_profiled_ = true;
  } catch (const DeviceError& error) {
    // Older libraries have no such descriptor, or another one under its number.
    device_.log(HIPDNN_SEV_INFO, std::string("plans are timed by events: ") + error.what());
    is_profiled_ = false;
  }
  return *is_profiled_;
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

std::vector<Answer> PlanTimer::answer(const Plan& plan, const Before& before, const Pieces& pieces) {
  if (before.other_operands && other_pointers_.empty()) add_other_operands();
  const DeviceBuffer workspace = workspace_for(device_, plan);
  const Descriptor pack = make_variant_pack(device_.shared_library(), uids_, pointers_, workspace.get(), what);
  const Descriptor other = make_variant_pack(device_.shared_library(), uids_, before.other_operands ? other_pointers_ : pointers_, workspace.get(), what);
  const HipApi& hip = device_.library().hip();
  const auto copy = [&](void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
    check(hip, hip.memcpy_async(to, from, bytes, kind, nullptr), "hipMemcpyAsync");
  };
  std::vector<Answer> answers;
  try {
    for (const Place& result : results_) fill(bases_[0] + result.offset, result.bytes, std::byte{0xff});
    fill(workspace.get(), plan.workspace_bytes(), before.workspace);
    if (before.other_operands) run(plan, other, 1);
    run(plan, pack, 1);
    for (const Place& result : results_) {
      const std::vector<Piece> parts = pieces_of(pieces, result);
      Answer& read = answers.emplace_back(Answer{result.dtype, std::vector<std::byte>(total_bytes(parts))});
      std::size_t to = 0;
      for (const Piece& piece : parts) {
        copy(&read.bytes[to], bases_[0] + result.offset + piece.offset, piece.bytes, hipMemcpyDeviceToHost);
        to += piece.bytes;
      }
    }
    check(hip, hip.stream_synchronize(nullptr), "hipStreamSynchronize");
  } catch (const DeviceError&) {
    hip.stream_synchronize(nullptr);  // what is queued still uses the memory
    throw;
  }
  return answers;
}

std::vector<Answer> PlanTimer::excerpt(std::span<const Answer> answers, const Pieces& pieces) const {
  std::vector<Answer> excerpts;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    Answer& one = excerpts.emplace_back(Answer{answers[i].dtype, {}});
    for (const Piece& piece : pieces_of(pieces, results_[i])) {
      const auto from = answers[i].bytes.begin() + static_cast<std::ptrdiff_t>(piece.offset);
      one.bytes.insert(one.bytes.end(), from, from + static_cast<std::ptrdiff_t>(piece.bytes));
    }
  }
  return excerpts;
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
  if (flush_.get() == nullptr && !device_.port().device_memory_is_host_memory) flush_ = device_.allocate(2 * kFlushBytes);
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
