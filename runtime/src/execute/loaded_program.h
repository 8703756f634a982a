// A program made ready on a device: plans built, constants in place, arena laid out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "execute/arena.h"
#include "execute/constant_memory.h"
#include "plan/device.h"
#include "plan/plan.h"
#include "program/program.h"

namespace hipdnn_rt {

/// Shared by all its contexts. Immutable, safe to use from several threads.
class LoadedProgram {
 public:
  /// Constants that `shared`, made for the same device, has copies of are not uploaded again. Throws ProgramError where the program is for
  /// another target or the port refuses a kernel, PlanRefusedError where the library has no plan
  /// for graphs, DeviceError where something else goes wrong.
  static std::shared_ptr<const LoadedProgram> load(std::shared_ptr<const Device> device, std::shared_ptr<const Program> program,
                                                   std::shared_ptr<const ConstantMemory> shared = nullptr);

  const Device& device() const { return *device_; }
  const Program& program() const { return *program_; }
  /// The plan of an execute step; null for other steps.
  const Plan* plan(std::size_t step) const { return plans_[step].get(); }
  /// The function of a launch step's kernel.
  hipFunction_t function(std::uint32_t kernel) const { return functions_[kernel]; }
  /// Address of a constant buffer, null for other kinds. Never written through.
  void* constant(std::size_t buffer) const { return constants_[buffer]; }
  /// Arena offset of a temp buffer, and, where arrays of the host are staged, of an input or output.
  std::uint64_t buffer_offset(std::size_t buffer) const { return layout_.offsets[buffer]; }
  std::uint64_t workspace_offset(std::size_t step) const { return layout_.offsets[program_->buffers().size() + step]; }
  /// Whether inputs and outputs in host memory go through the arena.
  bool stages_host_arrays() const { return !device_->port().device_memory_is_host_memory; }

  /// When each buffer, and behind them the workspace of each step, is alive in the arena; 0 bytes where it is not in there.
  const std::vector<ArenaRequest>& arena_requests() const { return requests_; }
  /// Their offsets, in the same order.
  const std::vector<std::uint64_t>& arena_offsets() const { return layout_.offsets; }

  std::uint64_t arena_bytes() const { return layout_.arena_bytes; }
  std::uint64_t largest_live_bytes() const { return layout_.largest_live_bytes; }
  std::uint64_t constant_bytes() const { return constant_bytes_; }
  /// Distinct plans.
  std::size_t plan_count() const { return plan_count_; }
  /// Time from call to return of `load`, and the part spent on plans, in milliseconds.
  double load_ms() const { return load_ms_; }
  double plan_ms() const { return plan_ms_; }

 private:
  LoadedProgram() = default;
  void place_constants(std::shared_ptr<const ConstantMemory> shared);
  void build_plans();
  void load_kernels();
  /// With the workspaces of the plans that there are.
  void lay_out();
  /// Throws ProgramError where it needs more than the option allows.
  void check_memory() const;

  std::shared_ptr<const Device> device_;
  std::shared_ptr<const Program> program_;
  std::shared_ptr<const ConstantMemory> shared_;
  /// What is in no shared memory.
  std::optional<ConstantMemory> own_;
  std::vector<void*> constants_;
  std::uint64_t constant_bytes_ = 0;
  std::vector<std::shared_ptr<const Plan>> plans_;
  std::size_t plan_count_ = 0;
  /// One for each kernel of the program.
  std::vector<Module> modules_;
  std::vector<hipFunction_t> functions_;
  std::vector<ArenaRequest> requests_;
  ArenaLayout layout_;
  double load_ms_ = 0;
  double plan_ms_ = 0;
};

}  // namespace hipdnn_rt
