// A loaded program behind one fused node: binds ONNX Runtime's tensors to the program's arguments and runs it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hipdnn_rt/context_pool.h"
#include "ort.h"
#include "profile.h"

namespace hipdnn_ep {

/// Names of a fused node's inputs and outputs, in ONNX Runtime's order.
struct NodeNames {
  std::string node;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

/// Where a session's programs run.
struct SessionDevice {
  std::shared_ptr<const hipdnn_rt::Device> device;
  /// Whether ONNX Runtime keeps this provider's tensors in the device's own memory and gives each run a stream.
  bool is_device_memory = false;
};

/// Safe to run from several threads at once. A run whose pointers were seen before neither locks nor allocates.
class NodeProgram {
 public:
  /// Build the plans. Throws ProgramError where the program's arguments are not the node's or it is for another target, DeviceError where a
  /// plan cannot be built. `profile` may be null; it outlives this object.
  NodeProgram(const Ort& ort, const SessionDevice& device, std::shared_ptr<const hipdnn_rt::Program> program, const NodeNames& names,
              Profile* profile);

  /// Throws InputError where a tensor is not as large as the program says, DeviceError where a call fails.
  void run(OrtKernelContext* context);

  const hipdnn_rt::Program& program() const { return pool_.program().program(); }

 private:
  struct Call;

  void bind_inputs(OrtKernelContext* context, Call& call) const;
  void bind_outputs(OrtKernelContext* context, Call& call) const;
  void run_on_stream(OrtKernelContext* context, const Call& call);
  hipdnn_rt::Memory memory_of(const OrtValue* value) const;

  Ort ort_;
  SessionDevice device_;
  hipdnn_rt::ContextPool pool_;
  /// Index of the node's input for each input of the program, likewise of the outputs.
  std::vector<std::size_t> input_index_;
  std::vector<std::size_t> output_index_;
  std::string name_;
  Profile* profile_;
};

}  // namespace hipdnn_ep
