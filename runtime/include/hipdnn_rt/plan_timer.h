// How long plans of one graph take, and what they answer, on operands of no meaning.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hipdnn_rt/plan.h"
#include "hipdnn_rt/plan_answers.h"
#include "hipdnn_rt/program.h"
#include "hipdnn_rt/shapes.h"

namespace hipdnn_rt {

/// Operands of an executable, and the clock of the device. One thread at a time; the handle has no stream.
class PlanTimer {
 public:
  /// Operands are filled as by `fill_operand`; constants are the program's own.
  /// Throws DeviceError where memory is short.
  PlanTimer(const Device& device, std::shared_ptr<const Handle> handle, const Executable& executable,
            std::span<const ConstantBinding> constants);

  /// Execute a plan of larger shapes once, at those of the executable. Blocks. Throws DeviceError where it does not run.
  void run_at(const Plan& plan, std::span<const Shape> overrides);

  /// Microseconds of one execution, by hipDNN's profiling control where the library has it, else by events of the device. On a GPU the median of
  /// several, each with nothing in the caches: in a program, weights are never there, and large activations are not. On the host the median of
  /// series. Blocks. Throws DeviceError where the plan does not run.
  double time_us(const Plan& plan);

  /// What an execution finds, as it may in a program.
  struct Before {
    /// In each byte of the workspace. A plan that adds to it, or counts in it, is right in fresh memory only, which is zero.
    std::byte workspace;
    /// Whether the same plan ran right before on other operands, of which caches and shared memory are still full. A plan that reads before its
    /// operands have arrived answers right after itself.
    bool other_operands;
  };

  /// What one execution writes into memory that was cleared before. Blocks. Throws as time_us does.
  std::vector<Answer> answer(const Plan& plan, const Before& before);

 private:
  /// A result, and where it lies in the block of operands.
  struct Result {
    hipdnnDataType_t dtype;
    std::size_t offset;
    std::size_t bytes;
  };

  void run(const Plan& plan, const Descriptor& pack, int count);
  void fill(void* memory, std::size_t bytes, std::byte value);
  double cold_us(const Plan& plan, const Descriptor& pack);
  double elapsed_ms(const Plan& plan, const Descriptor& pack, int count);
  double profiled_ms(const std::function<void()>& queue) const;
  double ms_between_events(const std::function<void()>& queue) const;
  bool has_profiling() const;

  const Device& device_;
  std::shared_ptr<const Handle> handle_;
  /// Whether hipDNN's profiling control takes the time; else events do.
  bool is_profiled_ = false;
  DeviceBuffer memory_;
  /// What is copied in to empty the caches; null on the host.
  DeviceBuffer flush_;
  std::byte* base_ = nullptr;
  std::vector<Result> results_;
  /// On the device, many bytes of one value each.
  std::map<std::byte, DeviceBuffer> patterns_;
  std::vector<std::int64_t> uids_;
  std::vector<void*> pointers_;
  std::vector<void*> other_pointers_;
};

}  // namespace hipdnn_rt
