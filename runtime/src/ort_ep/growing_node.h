// A node whose caches grow in the model and are buffers in its program (docs/adr/0038).
#pragma once

#include <memory>
#include <mutex>
#include <optional>
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
  struct Run;
  /// A buffer for each cache.
  struct Buffers;

  Run read(OrtKernelContext* context) const;
  void check_caches(const Run& run) const;
  std::shared_ptr<NodeProgram> program_for(const Run& run);
  /// Load the program for one new row, which comes behind a prompt.
  void load_step(Run run);
  void run_on_buffers(OrtKernelContext* context, Run& run, NodeProgram& program);
  std::unique_ptr<Buffers> take(const Run& run);
  void give_back(std::unique_ptr<Buffers> buffers);

  NodeSettings settings_;
  std::shared_ptr<const hipdnn_rt::DynamicProgram> program_;
  NodeSignature signature_;
  std::shared_ptr<const hipdnn_rt::ConstantMemory> constants_;
  hipdnn_rt::SizeCache<NodeProgram> programs_;
  /// Runs sizes for which the program does not hold.
  std::unique_ptr<FusedNode> rest_;
  std::mutex mutex_;
  std::unique_ptr<Buffers> free_;
};

}  // namespace hipdnn_ep
