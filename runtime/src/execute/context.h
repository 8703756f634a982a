// One run of a loaded program at a time: arena, stream, handle and variant packs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/clock.h"
#include "execute/graph_cache.h"
#include "execute/loaded_program.h"
#include "plan/variant_pack.h"

namespace hipdnn_rt {

/// Where an array of the caller lies.
enum class Memory { host, device };

/// A dense array in C order, aligned to 16 bytes; a null pointer only for an array of no elements.
struct InputArray {
  const void* pointer;
  Memory memory = Memory::host;
};
struct OutputArray {
  void* pointer;
  Memory memory = Memory::host;
};

/// The times of one run's steps.
struct TimedRun {
  /// When the first step began, by the host's clock.
  Clock::time_point began;
  /// Microseconds of each step by the device's clock. A step begins where the one before it ends.
  std::vector<double> elapsed_us;
};

/// Owns what one execution writes. Used by one thread at a time; contexts of one program run concurrently.
/// After an exception the context is still valid, nothing of the call is running any more and its outputs are undefined.
class Context {
 public:
  explicit Context(std::shared_ptr<const LoadedProgram> program);
  /// Waits for the work that is still queued.
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Execute all steps on this context's stream and wait. Arrays are in the order of the program's inputs and outputs, and as long as it
  /// says. Pointers seen before cost no allocation. Throws InputError for wrong counts or pointers, DeviceError where a call fails, and what
  /// `between` throws, which is called behind each step that is run by itself.
  void run(std::span<const InputArray> inputs, std::span<const OutputArray> outputs, const std::function<void()>& between = {});

  /// Queue all steps on the caller's `stream`, null for the device's default stream, and return at once: results are there when the stream
  /// gets past them. Until then arrays stay as they are; the stream belongs to the program's device and is destroyed only when its work is
  /// done. Calls may follow each other on any streams, those of `run` included: where the stream changes, the new one waits on the device
  /// for the old one's work, since both use this context's arena. Allocation and exceptions as `run`.
  void enqueue(std::span<const InputArray> inputs, std::span<const OutputArray> outputs, hipStream_t stream);

  /// As `run`, with a device event between steps.
  TimedRun run_timed(std::span<const InputArray> inputs, std::span<const OutputArray> outputs);

 private:
  /// An execute step, with pointers resolved as far as they are fixed.
  struct Execution {
    std::vector<std::int64_t> uids;
    std::vector<View> views;
    void* workspace = nullptr;
    /// Operands whose pointers are the caller's: their packs are in `cache`. Empty where `pack` serves every run.
    std::vector<std::size_t> varying;
    std::unique_ptr<VariantPackCache> cache;
    Descriptor pack;
  };

  /// A launch step's arguments.
  struct Launch {
    /// Resolved at each run.
    std::vector<void*> pointers;
    /// The address of each pointer, as the ABI takes them.
    std::vector<void*> parameters;
  };

  /// Events before, between and behind the steps of a run that is timed.
  struct Timing {
    std::vector<Event> events;
    /// When the host saw the last step end.
    Clock::time_point ended;
  };

  void prepare_step(std::size_t step);
  void bind(std::span<const InputArray> inputs, std::span<const OutputArray> outputs);
  void* resolve(const View& view) const { return buffers_[view.buffer] + view.offset; }
  const Descriptor& find_pack(std::size_t step);
  void launch(std::size_t step, const LaunchStep& action);
  void run_step(std::size_t step);
  void run_recorded();
  void run_all(std::span<const InputArray> inputs, std::span<const OutputArray> outputs, Timing* timing, const std::function<void()>& between);
  void begin(std::span<const InputArray> inputs, std::span<const OutputArray> outputs, hipStream_t stream);
  void abandon();
  void queue_steps(std::span<const InputArray> inputs, std::span<const OutputArray> outputs, Timing* timing, const std::function<void()>& between);
  void queue_timed_steps(Timing& timing);
  void switch_to(hipStream_t stream);
  void copy(void* destination, const void* source, std::size_t bytes, hipMemcpyKind kind);

  std::shared_ptr<const LoadedProgram> program_;
  DeviceBuffer memory_;
  std::byte* arena_ = nullptr;
  /// For `run`.
  Stream stream_;
  Handle handle_;
  /// What the handle is set to: where work goes, and where the work queued last has gone.
  hipStream_t current_ = nullptr;
  /// The end of the work queued last, where `is_pending_`: it may still run.
  Event end_;
  bool is_pending_ = false;
  /// Address of each buffer; those of inputs and outputs change with each run.
  std::vector<std::byte*> buffers_;
  std::vector<Execution> executions_;
  std::vector<Launch> launches_;
  /// The step of the first kernel that a run launches itself.
  std::size_t first_launch_ = 0;
  /// Where runs are recorded.
  std::optional<GraphCache> graphs_;
  /// Scratch: the addresses of the run's arrays.
  std::vector<std::byte*> addresses_;
  /// Scratch for the pointers of one step, sized ahead.
  std::vector<void*> pointers_;
};

}  // namespace hipdnn_rt
