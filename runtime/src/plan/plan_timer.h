// How long plans of one graph take, and what they answer, on operands of no meaning.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plan/excerpt.h"
#include "plan/plan.h"
#include "plan/plan_answers.h"
#include "plan/reference.h"
#include "program/program.h"

namespace hipdnn_rt {

/// Operands of an executable, and the clock of the device. One thread at a time; the handle has no stream.
class PlanTimer {
 public:
  /// Operands are filled as by `fill_operand`; constants are the program's own.
  /// Throws DeviceError where memory is short.
  PlanTimer(const Device& device, std::shared_ptr<const Handle> handle, const Executable& executable,
            std::span<const ConstantBinding> constants);

  /// What the plans read, by uid: whole, or these pieces one behind the other.
  OperandContents contents(const Pieces& pieces);

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

  /// What one execution writes into memory that was full of bytes 0xff before: results in the order of the executable's operands, whole or these pieces
  /// one behind the other. Blocks. Throws as time_us does.
  std::vector<Answer> answer(const Plan& plan, const Before& before, const Pieces& pieces = {});
  /// The pieces of what `answer` told whole.
  std::vector<Answer> excerpt(std::span<const Answer> answers, const Pieces& pieces) const;

 private:
  /// Where an operand lies in the block of operands.
  struct Place {
    std::int64_t uid;
    hipdnnDataType_t dtype;
    std::size_t offset;
    std::size_t bytes;
  };

  /// Bytes that repeat, on the host and on the device: memory is filled faster from there than from the host.
  struct Pattern {
    std::vector<std::byte> host;
    DeviceBuffer device;
  };
  Pattern make_pattern(std::vector<std::byte> contents) const;
  const Pattern& random_pattern(hipdnnDataType_t dtype);
  /// Where in its pattern an operand of a block begins.
  std::size_t phase_of(std::int64_t uid, std::size_t block) const;
  void add_block(std::size_t block);
  void fill_block(std::size_t block);
  void add_other_operands();
  void spread(const Pattern& pattern, std::size_t phase, void* memory, std::size_t bytes);
  std::vector<Piece> pieces_of(const Pieces& pieces, const Place& place) const;
  void run(const Plan& plan, const Descriptor& pack, int count);
  void fill(void* memory, std::size_t bytes, std::byte value);
  double cold_us(const Plan& plan, const Descriptor& pack);
  double elapsed_ms(const Plan& plan, const Descriptor& pack, int count);
  double profiled_ms(const std::function<void()>& queue) const;
  double ms_between_events(const std::function<void()>& queue) const;
  bool has_profiling();

  const Device& device_;
  std::shared_ptr<const Handle> handle_;
  /// Whether hipDNN's profiling control takes the time; else events do. Unknown before the first time.
  std::optional<bool> is_profiled_;
  /// Of each of the two blocks of operands; the second one is there when it was first asked for.
  std::size_t block_bytes_ = 0;
  std::array<DeviceBuffer, 2> memory_;
  std::array<std::byte*, 2> bases_{};
  /// What is copied in to empty the caches; null on the host and before the first time.
  DeviceBuffer flush_;
  std::vector<Place> inputs_, results_;
  std::vector<ConstantBinding> constants_;
  /// Many bytes of one value each, and random numbers of a type.
  std::map<std::byte, Pattern> bytes_;
  std::map<hipdnnDataType_t, Pattern> numbers_;
  std::vector<std::int64_t> uids_;
  std::vector<std::size_t> offsets_;
  std::vector<void*> pointers_;
  std::vector<void*> other_pointers_;
};

}  // namespace hipdnn_rt
