// What ONNX Runtime calls to run a fused node: one program, or one per combination of input sizes.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "model_compiler.h"
#include "node_program.h"

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

/// A node whose inputs have fixed sizes.
class StaticNode final : public FusedNode {
 public:
  StaticNode(const Ort& ort, std::unique_ptr<NodeProgram> program) : FusedNode(ort), program_(std::move(program)) {}
  void run(OrtKernelContext* context) override { program_->run(context); }

 private:
  std::unique_ptr<NodeProgram> program_;
};

/// A node whose input sizes are known when it runs: the first run with new sizes compiles a program for them, those that follow find it
/// without a lock (reading the sizes allocates: ONNX Runtime tells them in an object of their own). Programs used least recently go when there are more than `capacity`.
class DynamicNode final : public FusedNode {
 public:
  DynamicNode(const Ort& ort, std::shared_ptr<const ModelCompiler> compiler, ModelImage image, SessionDevice device,
              NodeSignature signature, Profile* profile, std::size_t capacity);
  ~DynamicNode() override;
  void run(OrtKernelContext* context) override;

 private:
  using Sizes = std::vector<std::int64_t>;
  /// A program and the sizes it is for: rank and dims of every input, one after the other.
  struct Entry {
    Sizes sizes;
    std::unique_ptr<NodeProgram> program;
  };
  /// A place for an entry. An entry is deleted after it has left its slot and the slot's readers have gone.
  struct Slot {
    std::atomic<Entry*> entry{nullptr};
    std::atomic<int> readers{0};
    std::atomic<std::uint64_t> last_use{0};
  };

  Sizes read_sizes(OrtKernelContext* context) const;
  bool run_known(OrtKernelContext* context, const Sizes& sizes);
  std::unique_ptr<Entry> compile(const Sizes& sizes) const;
  void insert(std::unique_ptr<Entry> entry);

  Ort ort_;
  std::shared_ptr<const ModelCompiler> compiler_;
  ModelImage image_;
  SessionDevice device_;
  NodeSignature signature_;
  Profile* profile_;
  std::vector<Slot> slots_;
  std::atomic<std::uint64_t> clock_{0};
  /// One new program at a time, so that threads that meet the same new sizes compile once.
  std::mutex compiling_;
};

}  // namespace hipdnn_ep
