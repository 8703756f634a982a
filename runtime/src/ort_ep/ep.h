// The execution provider of one session: claims nodes, compiles them, loads compiled ones.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ep_context.h"
#include "fused_node.h"
#include "graph_view.h"
#include "logger.h"
#include "memory/device_memory.h"
#include "model_compiler.h"
#include "node_program.h"
#include "options.h"

namespace hipdnn_ep {

/// A node that stays on the CPU, and why.
struct Refusal {
  std::string node;
  std::string op;
  std::string reason;
};

/// Made by the factory, which outlives it, for one session. ONNX Runtime calls it from one thread at a time, its fused nodes from many.
class Ep final : public OrtEp {
 public:
  struct Settings {
    Options options;
    ContextSettings context;
    SessionDevice device;
    /// Null on the CPU.
    std::shared_ptr<DeviceMemory> memory;
    std::string target;
    /// The caller's own, on which work on a GPU goes; null where ONNX Runtime has one.
    hipStream_t user_stream = nullptr;
    /// The session's device under another rule for products of f32.
    std::function<std::shared_ptr<const hipdnn_rt::Device>(bool allows_tf32)> open_device;
  };

  Ep(const Ort& ort, Settings settings, CompilerService& service, Logger logger);
  /// A provider with which no session comes about: `failure` says why. ONNX Runtime's Python package takes a factory that fails for a reason
  /// to run on the CPU, a provider that cannot compile for an error.
  Ep(const Ort& ort, std::string failure, Logger logger);
  ~Ep();
  Ep(const Ep&) = delete;
  Ep& operator=(const Ep&) = delete;

 private:
  void set_callbacks();
  void get_capability(const OrtGraph* graph, OrtEpGraphSupportInfo* support);
  /// A model compiled ahead of time needs no compiler to load, so what it has beside its programs stays on the CPU.
  void leave_rest(const std::vector<const OrtNode*>& nodes, std::size_t node_count) const;
  void place(const OrtGraph* graph, const std::vector<const OrtNode*>& nodes, OrtEpGraphSupportInfo* support);
  /// A branch of an If becomes programs of its own where it has large weights, as those of merged decoders have. ONNX Runtime chooses the branch.
  void place_branch(const OrtGraph* graph, const OrtNode* parent, const std::vector<const OrtNode*>& nodes, OrtEpGraphSupportInfo* support);
  /// Claim the nodes of an encoded graph that become programs.
  void take(const EncodedModel& model, const std::vector<const OrtNode*>& nodes, OrtEpGraphSupportInfo* support);
  /// None where there is no compiler and the session does not insist on one.
  std::optional<PlacedModel> try_place(const EncodedModel& model) const;
  void claim(OrtEpGraphSupportInfo* support, const std::vector<const OrtNode*>& nodes) const;
  void report(const PlacedModel& placed, std::size_t node_count, const std::vector<Refusal>& refusals) const;

  void compile_all(std::span<const OrtGraph* const> graphs, std::span<const OrtNode* const> fused_nodes, OrtNodeComputeInfo** infos,
                   OrtNode** context_nodes);
  std::unique_ptr<FusedNode> compile(const OrtGraph* graph, const OrtNode* fused_node, OrtNode** context_node);
  /// Why the option for keys has no effect, if so.
  std::optional<std::string> no_keys() const;
  void write_keys() const;
  std::unique_ptr<FusedNode> compile_dynamic(const OrtGraph* graph, const EncodedModel& model, const NodeSignature& signature, OrtNode** context_node);
  void put_in_context(const OrtGraph* graph, const NodeSignature& signature, std::span<const std::byte> container, OrtNode** context_node);
  /// The node of a program. One for another device, of a model that is compiled ahead, cannot run.
  std::unique_ptr<FusedNode> make_fused(std::shared_ptr<const hipdnn_rt::DynamicProgram> program, const NodeSignature& signature,
                                        std::optional<SizeCompiler> rest = std::nullopt) const;
  NodeSettings node_settings() const {
    return {ort_, settings_.device, {profile_.get(), listeners_.get()}, static_cast<std::size_t>(settings_.options.max_specializations), weights_};
  }
  std::string compatibility() const;
  std::unique_ptr<FusedNode> load(const OrtGraph* graph, const OrtNode* node, const NodeSignature& signature, OrtNode** context_node);
  NodeSignature signature_of(const OrtNode* fused_node) const;
  NodeSignature signature_of_context(const OrtNode* node, const NodeSignature& fused) const;

  Ort ort_;
  Settings settings_;
  Logger logger_;
  std::shared_ptr<const ModelCompiler> compiler_;
  std::string compatibility_;
  std::unique_ptr<Profile> profile_;
  std::shared_ptr<SessionWeights> weights_ = std::make_shared<SessionWeights>();
  std::shared_ptr<Listeners> listeners_ = std::make_shared<Listeners>();
  /// Of the programs that this session would look for, where keys alone are asked for.
  std::vector<nlohmann::json> keys_;
  /// Of values that the model declares with sizes which they need not have.
  KnownDims known_dims_;
  /// Why the session must not come about. ONNX Runtime takes failures from Compile alone, so GetCapability leaves it here.
  std::optional<std::string> failure_;
};

}  // namespace hipdnn_ep
