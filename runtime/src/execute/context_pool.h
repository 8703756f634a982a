// Contexts of one loaded program, lent to concurrent runs.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "execute/context.h"

namespace hipdnn_rt {

/// Safe to use from several threads: each run takes a free context, the one its thread used last where that is free, or makes one where all
/// are busy, so there are never more contexts than there were runs at once. Taking a context that exists and giving it back neither locks
/// nor allocates, for up to kSlots runs at once.
class ContextPool {
 public:
  static constexpr std::size_t kSlots = 64;

  explicit ContextPool(std::shared_ptr<const LoadedProgram> program) : program_(std::move(program)) {}

  const LoadedProgram& program() const { return *program_; }
  const std::shared_ptr<const LoadedProgram>& shared_program() const { return program_; }
  /// As Context::run, on a context of the pool. One that fails is dropped.
  void run(std::span<const InputArray> inputs, std::span<const OutputArray> outputs, const std::function<void()>& between = {});
  /// As Context::enqueue, on a context of the pool. It is free for the next run, on whatever stream, before its work is done.
  void enqueue(std::span<const InputArray> inputs, std::span<const OutputArray> outputs, hipStream_t stream);
  /// As Context::run_timed, on a context of the pool.
  TimedRun run_timed(std::span<const InputArray> inputs, std::span<const OutputArray> outputs);
  /// Contexts alive, those that are being made included.
  std::size_t context_count() const;

 private:
  class Lease;
  /// One bit per slot.
  using SlotSet = std::uint64_t;
  static_assert(8 * sizeof(SlotSet) == kSlots);

  static std::size_t claim(std::atomic<SlotSet>& set, std::size_t preferred);
  static void restore(std::atomic<SlotSet>& set, std::size_t slot);
  std::size_t make_in_slot();
  std::unique_ptr<Context> take_beyond_slots();

  std::shared_ptr<const LoadedProgram> program_;
  /// Slots with a context that nobody uses, and slots without one. Whoever clears a bit owns the slot until setting one again. The word is
  /// all there is to the state, so a word that changes and changes back does not deceive a compare-and-exchange.
  alignas(64) std::atomic<SlotSet> free_{0};
  alignas(64) std::atomic<SlotSet> vacant_{~SlotSet{0}};
  std::array<std::unique_ptr<Context>, kSlots> slots_;

  /// For more runs at once than there are slots.
  mutable std::mutex beyond_mutex_;
  std::vector<std::unique_ptr<Context>> free_beyond_;
  std::size_t count_beyond_ = 0;
};

}  // namespace hipdnn_rt
