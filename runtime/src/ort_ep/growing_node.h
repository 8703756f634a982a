// A node whose caches grow in the model and are buffers in its program (docs/adr/0038, docs/adr/0048).
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "fused_node.h"

namespace hipdnn_ep {

/// Runs in one of two ways, which the lengths of its inputs tell apart:
/// - Caches that grow: those of the caller are copied into buffers of the node's own and what is valid after the run is copied out. One
///   program serves until the buffers are full.
/// - Buffers of the caller's, longer than what is valid in them after the run, which the length of a mask says: the program runs on them.
class GrowingNode final : public FusedNode {
 public:
  /// `program` says that its caches grow; the signature is that of the model. `rest` as for DynamicProgramNode.
  GrowingNode(const NodeSettings& settings, std::shared_ptr<const hipdnn_rt::DynamicProgram> program, NodeSignature signature,
              std::optional<SizeCompiler> rest);
  ~GrowingNode() override;

  void run(OrtKernelContext* context) override;

 private:
  struct Input;
  struct Run;
  struct Binding;
  /// Memory of the device for arguments that are copied.
  class Scratch;

  Input read_input(OrtKernelContext* context, std::size_t index) const;
  Run read(OrtKernelContext* context) const;
  void check_caches(const Run& run) const;
  std::int64_t read_total(Run& run) const;
  /// The sizes that buckets round a symbol to; none where it is taken as it is.
  const hipdnn_rt::Sizes& buckets_of(std::optional<std::size_t> symbol) const;
  std::int64_t rows_for(const Run& run) const;
  /// The number of new rows that a program is for, if rows behind those of the caller's can be hidden by 0 in a mask.
  std::int64_t window_for(std::int64_t fresh, std::int64_t room) const;
  std::shared_ptr<NodeProgram> program_for(const Run& run);
  /// Load the program for one new row, which comes behind a prompt.
  void load_step(Run run);
  void run_on_buffers(OrtKernelContext* context, const Run& run, NodeProgram& program);
  void bind_inputs(const Run& run, const NodeProgram& program, Binding& binding) const;
  void bind_outputs(OrtKernelContext* context, const Run& run, const NodeProgram& program, Binding& binding) const;
  /// Whether a program takes an array where it lies.
  bool stays(const void* data, hipdnn_rt::Memory memory) const;
  std::unique_ptr<Scratch> take();
  void give_back(std::unique_ptr<Scratch> scratch);

  NodeSettings settings_;
  std::shared_ptr<const hipdnn_rt::DynamicProgram> program_;
  NodeSignature signature_;
  std::shared_ptr<const hipdnn_rt::ConstantMemory> constants_;
  std::optional<std::size_t> added_;
  /// Whether all masks are whole numbers or truth values.
  bool are_flags_;
  hipdnn_rt::SizeCache<NodeProgram> programs_;
  /// Runs sizes for which the program does not hold.
  std::unique_ptr<FusedNode> rest_;
  std::mutex mutex_;
  std::unique_ptr<Scratch> free_;
};

}  // namespace hipdnn_ep
