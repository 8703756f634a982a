// What ONNX Runtime calls to run a fused node: one program, or one per combination of input sizes.
#pragma once

#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "execute/size_cache.h"
#include "model_compiler.h"
#include "node_program.h"
#include "program/dynamic_program.h"
#include "session_weights.h"

namespace hipdnn_ep {

/// The callbacks of one fused node. ONNX Runtime runs it from several threads at once and releases it when none does.
class FusedNode : public OrtNodeComputeInfo {
 public:
  explicit FusedNode(const Ort& ort);
  virtual ~FusedNode() = default;
  FusedNode(const FusedNode&) = delete;
  FusedNode& operator=(const FusedNode&) = delete;

  virtual void run(OrtKernelContext* context) = 0;

 private:
  Ort ort_;
};

/// A node whose inputs have static shapes.
class StaticNode final : public FusedNode {
 public:
  StaticNode(const Ort& ort, std::unique_ptr<NodeProgram> program) : FusedNode(ort), program_(std::move(program)) {}
  void run(OrtKernelContext* context) override { program_->run(context); }

 private:
  std::unique_ptr<NodeProgram> program_;
};

/// A node of a session that does not run: of a model that is compiled ahead for another device, or whose keys alone are wanted.
class UnrunnableNode final : public FusedNode {
 public:
  UnrunnableNode(const Ort& ort, std::string reason) : FusedNode(ort), reason_(std::move(reason)) {}
  /// Throws ProgramError with the reason.
  void run(OrtKernelContext* context) override;

 private:
  std::string reason_;
};

/// What the nodes of one session that are fused have in common.
struct NodeSettings {
  Ort ort;
  SessionDevice device;
  ProfileSinks sinks;
  /// Programs kept by a node whose input sizes vary.
  std::size_t max_specializations;
  std::shared_ptr<SessionWeights> weights;
};

/// A model that is compiled for the sizes of a run.
struct SizeCompiler {
  std::shared_ptr<const ModelCompiler> compiler;
  ModelImage image;
};

/// A node whose input sizes are known when it runs. The first run with new sizes makes a program for them, those that follow find it: under a
/// lock that is held for the search alone, and without an allocation beside those of ONNX Runtime, which tells sizes in an object of its own.
/// Programs used least recently go when there are more than `max_specializations`.
class SizedNode : public FusedNode {
 public:
  SizedNode(const NodeSettings& settings, NodeSignature signature);
  void run(OrtKernelContext* context) override;

 protected:
  /// Throw InputError for dims that no program fits, before one makes way for theirs.
  virtual void check_dims(const InputDims&) const {}
  /// The dims of a program that serves these if inputs are filled up with zeros; none where they are as they are.
  virtual std::vector<std::vector<std::int64_t>> filled(const InputDims&) const { return {}; }
  /// The dims of the run that is likely to follow one with these; none where nothing is known of it.
  virtual std::vector<std::vector<std::int64_t>> next(const InputDims&) const { return {}; }
  /// The program for these dims. Called by one thread at a time.
  virtual std::shared_ptr<NodeProgram> make(const InputDims& dims) const = 0;
  std::shared_ptr<NodeProgram> compile(const SizeCompiler& compiler, const InputDims& dims) const;

  const NodeSettings& settings() const { return settings_; }
  const NodeSignature& signature() const { return signature_; }

 private:
  /// Rank and dims of every input, one after the other.
  using Key = std::pmr::vector<std::int64_t>;
  void read_key(OrtKernelContext* context, Key& key) const;
  void run_new(OrtKernelContext* context, const Key& key);
  std::shared_ptr<NodeProgram> get(const std::vector<std::vector<std::int64_t>>& dims);

  NodeSettings settings_;
  NodeSignature signature_;
  hipdnn_rt::SizeCache<NodeProgram> programs_;
};

/// A node with a dynamic program: a run with a new shape lays it out and builds its plans.
class DynamicProgramNode final : public SizedNode {
 public:
  /// `rest` compiles for sizes for which the program does not hold; none where that is an error. Throws ProgramError where the program's
  /// arguments are not the node's.
  DynamicProgramNode(const NodeSettings& settings, std::shared_ptr<const hipdnn_rt::DynamicProgram> program, NodeSignature signature,
           std::optional<SizeCompiler> rest);

 private:
  void check_dims(const InputDims& dims) const override;
  std::vector<std::vector<std::int64_t>> filled(const InputDims& dims) const override;
  std::vector<std::vector<std::int64_t>> next(const InputDims& dims) const override;
  std::shared_ptr<NodeProgram> make(const InputDims& dims) const override;

  std::shared_ptr<const hipdnn_rt::DynamicProgram> program_;
  /// Of all specializations.
  std::shared_ptr<const hipdnn_rt::ConstantMemory> constants_;
  std::optional<SizeCompiler> rest_;
};

/// A node without a dynamic program: a run with a new shape compiles it.
class DynamicNode final : public SizedNode {
 public:
  DynamicNode(const NodeSettings& settings, SizeCompiler compiler, NodeSignature signature)
      : SizedNode(settings, std::move(signature)), compiler_(std::move(compiler)) {}

 private:
  std::shared_ptr<NodeProgram> make(const InputDims& dims) const override { return compile(compiler_, dims); }

  SizeCompiler compiler_;
};

/// `specialization` of `program` for these sizes, loaded. Throws as NodeProgram does, but InputError where the library has no plan.
std::shared_ptr<NodeProgram> load_program(const NodeSettings& settings, const hipdnn_rt::DynamicProgram& program, const hipdnn_rt::Sizes& sizes,
                                          std::shared_ptr<const hipdnn_rt::Program> specialization, const NodeSignature& signature,
                                          std::shared_ptr<const hipdnn_rt::ConstantMemory> constants);

/// The node that runs a program. Throws as NodeProgram and DynamicProgramNode do.
std::unique_ptr<FusedNode> make_node(const NodeSettings& settings, std::shared_ptr<const hipdnn_rt::DynamicProgram> program,
                                     NodeSignature signature, std::optional<SizeCompiler> rest = std::nullopt);

}  // namespace hipdnn_ep
