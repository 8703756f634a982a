// A loaded program behind one fused node: binds ONNX Runtime's tensors to the program's arguments and runs it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "execute/context_pool.h"
#include "graph_view.h"
#include "ort.h"
#include "profile.h"
#include "program/dynamic_program.h"
#include "step_profiler.h"

namespace hipdnn_ep {

/// A value that a fused node reads or computes.
struct NodeValue {
  std::string name;
  TensorType type;
  /// Its position among the inputs, or outputs, of the calls.
  std::size_t index = 0;
};

/// A fused node: its values in the order of the program's arguments.
struct NodeSignature {
  std::string node;
  std::vector<NodeValue> inputs;
  std::vector<NodeValue> outputs;
};

/// Where a session's programs run.
struct SessionDevice {
  std::shared_ptr<const hipdnn_rt::Device> device;
  /// Whether ONNX Runtime keeps this provider's tensors in the device's own memory and gives each run a stream.
  bool is_device_memory = false;
};

/// Who hears of the time of each step. They outlive what runs.
struct ProfileSinks {
  /// May be null.
  Profile* file;
  const Listeners* listeners;
};

/// Dims of each input.
using InputDims = std::vector<std::span<const std::int64_t>>;

/// Where a tensor lies. On a GPU one still lies on the host where it comes from a node on the CPU or goes to one: no copy stands between the two.
hipdnn_rt::Memory memory_of(const Ort& ort, const SessionDevice& device, const OrtValue* value);
/// The stream of a run; null where ONNX Runtime gives none.
hipStream_t stream_of(const Ort& ort, const SessionDevice& device, OrtKernelContext* context);
/// Throw DeviceError where a tensor has no memory: ONNX Runtime hands on an allocation that failed so.
void check_memory(const hipdnn_rt::Argument& argument, const void* data);

/// The signature of a program: that of its node, and where caches grow the number of valid rows, which the node does not have.
NodeSignature signature_on_buffers(const hipdnn_rt::DynamicProgram& program, NodeSignature node);

/// Throw ProgramError where a program's arguments are not the signature's values, position by position: in number, element type, or a size of an
/// input that both know.
void check_arguments(const hipdnn_rt::DynamicProgram& program, const NodeSignature& signature);

/// Safe to run from several threads at once. A run whose pointers were seen before neither locks nor allocates.
class NodeProgram {
 public:
  /// Build the plans. The program's arguments are the signature's values, position by position. Throws ProgramError where they differ in number
  /// or element type, or the program is for another target; DeviceError where a plan cannot be built. `constants` as
  /// for LoadedProgram.
  NodeProgram(const Ort& ort, const SessionDevice& device, std::shared_ptr<const hipdnn_rt::Program> program, NodeSignature signature,
              ProfileSinks sinks, std::shared_ptr<const hipdnn_rt::ConstantMemory> constants = nullptr);

  /// Throws InputError where a tensor is not as large as the program says, DeviceError where a call fails.
  void run(OrtKernelContext* context) { run(context, nullptr); }
  /// Run on inputs with these dims, filled up with zeros where the program's are larger. They lie in host memory.
  void run_filled(OrtKernelContext* context, const InputDims& dims) { run(context, &dims); }
  /// Run on arrays, position by position, on the stream of a run: results are there when it gets past them, those of the host at once. Throws as
  /// above.
  void run(std::span<const hipdnn_rt::InputArray> inputs, std::span<const hipdnn_rt::OutputArray> outputs, hipStream_t stream);

  const hipdnn_rt::Program& program() const { return pool_.program().program(); }

 private:
  struct Call;

  void run(OrtKernelContext* context, const InputDims* dims);
  void bind_inputs(OrtKernelContext* context, Call& call, const InputDims* dims) const;
  void bind_outputs(OrtKernelContext* context, Call& call) const;
  /// Whether a profiler hears of the calling thread's runs.
  bool is_profiled() const { return sinks_.file != nullptr || (sinks_.listeners->is_any() && !sinks_.listeners->here().empty()); }
  void run_profiled(std::span<const hipdnn_rt::InputArray> inputs, std::span<const hipdnn_rt::OutputArray> outputs);

  Ort ort_;
  SessionDevice device_;
  hipdnn_rt::ContextPool pool_;
  NodeSignature signature_;
  ProfileSinks sinks_;
};

}  // namespace hipdnn_ep
