#include "ep.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "atomic_file.h"
#include "memory/sync_stream.h"
#include "names.h"

namespace hipdnn_ep {
namespace {

constexpr std::size_t kReasonsInLine = 5;
/// Bytes of weights from which on a branch of an If is worth programs: small ones are cheaper on the CPU than a hop.
constexpr std::uint64_t kLargeBranchBytes = 1 << 18;

using NodesByName = std::unordered_map<std::string, const OrtNode*>;

/// The first reason of each node that stays on the CPU.
std::vector<Refusal> refusals_of(const Ort& ort, const PlacedModel& placed, const NodesByName& nodes) {
  std::set<std::string> seen;
  std::vector<Refusal> refusals;
  for (const Rejection& rejection : placed.rejections) {
    if (!seen.insert(rejection.node).second) continue;
    const auto node = nodes.find(rejection.node);
    refusals.push_back({rejection.node, node == nodes.end() ? "" : op_type_of(ort, node->second), rejection.reason});
  }
  return refusals;
}

/// "12 x Gather: reason; 1 x TopK: reason", the most frequent first.
std::string group_reasons(const std::vector<Refusal>& refusals, std::size_t limit) {
  std::map<std::string, std::size_t> counts;
  for (const Refusal& refusal : refusals) ++counts[(refusal.op.empty() ? "" : refusal.op + ": ") + refusal.reason];
  std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), limit); ++i) {
    text += (i == 0 ? "" : "; ") + std::to_string(sorted[i].second) + " x " + sorted[i].first;
  }
  if (sorted.size() > limit) text += "; and " + std::to_string(sorted.size() - limit) + " more reasons";
  return text;
}

/// Whether the program has one size for dims to which the model gives different names, or none: one of them may be 1 and be broadcast.
bool joins_names(const hipdnn_rt::DynamicProgram& program, const NodeSignature& signature) {
  std::map<std::size_t, std::string> names;
  for (std::size_t i = 0; i < std::min(program.inputs().size(), signature.inputs.size()); ++i) {
    const auto& sizes = program.inputs()[i].dims;
    const TensorType& type = signature.inputs[i].type;
    for (std::size_t d = 0; type.dims && d < std::min(sizes.size(), type.dims->size()); ++d) {
      const std::optional<std::size_t> symbol = program.symbol_of(sizes[d]);
      if (!symbol || (*type.dims)[d] >= 0) continue;
      const auto [first, is_new] = names.emplace(*symbol, type.symbols[d]);
      if (!is_new && (first->second.empty() || first->second != type.symbols[d])) return true;
    }
  }
  return false;
}

Ep* self_of(OrtEp* ep) { return static_cast<Ep*>(ep); }

}  // namespace

Ep::Ep(const Ort& ort, Settings settings, CompilerService& service, Logger logger)
    : OrtEp{},
      ort_(ort),
      settings_(std::move(settings)),
      logger_(logger),
      compiler_(std::make_shared<const ModelCompiler>(service, settings_.options, settings_.target,
                                                      settings_.device.device->library().version(), logger)),
      compatibility_(compatibility()),
      profile_(settings_.options.profile.empty() ? nullptr : std::make_unique<Profile>()) {
  set_callbacks();
}

Ep::Ep(const Ort& ort, std::string failure, Logger logger) : OrtEp{}, ort_(ort), logger_(logger), failure_(std::move(failure)) {
  set_callbacks();
  // A graph without nodes has none that could fail to compile.
  OnRunStart = [](OrtEp* ep, const OrtRunOptions*) noexcept {
    const Ep* self = self_of(ep);
    return guard(self->ort_, [&] { throw hipdnn_rt::Error(*self->failure_); });
  };
}

Ep::~Ep() {
  if (!profile_) return;
  try {
    profile_->write(settings_.options.profile);
  } catch (const std::exception& error) {
    logger_.warning(std::string("the profile is lost: ") + error.what());
  }
}

void Ep::set_callbacks() {
  ort_version_supported = ort_.has_profiling ? ORT_API_VERSION_OF_PROFILING : ORT_API_VERSION;
  GetName = [](const OrtEp*) noexcept { return kEpName; };
  OrtEp::GetCapability = [](OrtEp* ep, const OrtGraph* graph, OrtEpGraphSupportInfo* support) noexcept {
    return guard(self_of(ep)->ort_, [&] { self_of(ep)->get_capability(graph, support); });
  };
  OrtEp::Compile = [](OrtEp* ep, const OrtGraph** graphs, const OrtNode** fused_nodes, size_t count, OrtNodeComputeInfo** infos,
                      OrtNode** context_nodes) noexcept {
    return guard(self_of(ep)->ort_, [&] {
      self_of(ep)->compile_all({graphs, count}, {fused_nodes, count}, infos, context_nodes);
    });
  };
  ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) delete static_cast<FusedNode*>(infos[i]);
  };
  CreateSyncStreamForDevice = [](OrtEp* ep, const OrtMemoryDevice*, OrtSyncStreamImpl** stream) noexcept {
    *stream = nullptr;
    Ep* self = self_of(ep);
    return guard(self->ort_, [&] {
      const Settings& settings = self->settings_;
      if (settings.memory != nullptr) *stream = new SyncStream(self->ort_, settings.memory, settings.user_stream);
    });
  };
  GetCompiledModelCompatibilityInfo = [](OrtEp* ep, const OrtGraph*) noexcept { return self_of(ep)->compatibility_.c_str(); };
  IsConcurrentRunSupported = [](OrtEp*, bool* is_supported) noexcept -> OrtStatus* {
    *is_supported = true;
    return nullptr;
  };
  OrtEp::CreateProfiler = [](OrtEp* ep, OrtEpProfilerImpl** profiler) noexcept {
    *profiler = nullptr;
    Ep* self = self_of(ep);
    return guard(self->ort_, [&] { *profiler = new StepProfiler(self->ort_, self->listeners_); });
  };
}

void Ep::get_capability(const OrtGraph* graph, OrtEpGraphSupportInfo* support) {
  std::vector<const OrtNode*> nodes = nodes_of(ort_, graph);
  const std::size_t node_count = nodes.size();
  for (const OrtNode* node : nodes) {
    if (is_own_context(ort_, node)) claim(support, {node});
  }
  std::erase_if(nodes, [&](const OrtNode* node) { return is_own_context(ort_, node); });
  if (nodes.empty()) return;
  if (const OrtNode* parent = parent_of(ort_, graph)) return place_branch(graph, parent, nodes, support);
  if (!failure_) failure_ = no_keys();
  if (failure_) return claim(support, {nodes.front()});
  try {
    if (nodes.size() < node_count) return leave_rest(nodes, node_count);
    place(graph, nodes, support);
  } catch (const std::exception& error) {
    failure_ = error.what();
    claim(support, {nodes.front()});
  }
}

void Ep::place_branch(const OrtGraph* graph, const OrtNode* parent, const std::vector<const OrtNode*>& nodes, OrtEpGraphSupportInfo* support) {
  // A loop runs its body many times: a hop for each costs more than it gains.
  if (op_type_of(ort_, parent) != "If" || settings_.context.is_enabled || failure_) return;
  const EncodedModel model = encode_model(ort_, graph, interface_of(ort_, graph), Weights::described);
  if (model.weight_bytes < kLargeBranchBytes) return;
  try {
    take(model, nodes, support);
  } catch (const std::exception& error) {
    failure_ = error.what();  // what the main graph is asked for says so
  }
}

std::optional<std::string> Ep::no_keys() const {
  if (settings_.options.cache_keys.empty() || (compiler_->has_cache() && !settings_.context.is_enabled)) return std::nullopt;
  return "option 'cache_keys' has no effect: " +
         std::string(settings_.context.is_enabled ? "a model that is compiled ahead is not kept by its keys"
                                                  : "nothing is kept where cache_limit_mb is 0, HIPDNN_MLIR_EXTENSIONS is set, or there is no folder");
}

void Ep::leave_rest(const std::vector<const OrtNode*>& nodes, std::size_t node_count) const {
  const std::string line = std::to_string(node_count - nodes.size()) + " of " + std::to_string(node_count) +
                           " nodes hold programs compiled ahead; the others run on the CPU: compile the original model to have them placed";
  if (settings_.options.strict) throw hipdnn_rt::Error("option strict: " + line);
  logger_.warning(line);
}

void Ep::place(const OrtGraph* graph, const std::vector<const OrtNode*>& nodes, OrtEpGraphSupportInfo* support) {
  take(encode_model(ort_, graph, interface_of(ort_, graph), Weights::described), nodes, support);
}

void Ep::take(const EncodedModel& model, const std::vector<const OrtNode*>& nodes, OrtEpGraphSupportInfo* support) {
  const std::optional<PlacedModel> found = try_place(model);
  if (!found) return;
  const PlacedModel& placed = *found;
  known_dims_ = placed.known_dims;
  NodesByName by_name;
  for (std::size_t i = 0; i < nodes.size(); ++i) by_name[model.node_names[i]] = nodes[i];
  const std::vector<Refusal> refusals = refusals_of(ort_, placed, by_name);
  report(placed, nodes.size(), refusals);
  if (settings_.options.strict && !refusals.empty()) {
    throw hipdnn_rt::Error("option strict: " + std::to_string(refusals.size()) + " of " + std::to_string(nodes.size()) +
                           " nodes are not taken: " + group_reasons(refusals, refusals.size()));
  }
  for (const PlacedModel::Part& part : placed.parts) {
    std::vector<const OrtNode*> members;
    for (const std::string& name : part.nodes) {
      const auto member = by_name.find(name);
      if (member == by_name.end()) throw hipdnn_rt::Error("the compiler placed a node '" + name + "' that the model does not have");
      members.push_back(member->second);
    }
    claim(support, members);
  }
}

std::optional<PlacedModel> Ep::try_place(const EncodedModel& model) const {
  try {
    return compiler_->place(model);
  } catch (const CompilerError& error) {
    const std::string& compiler = settings_.options.compiler;
    const bool may_lack_one = compiler == "auto" || compiler == "none";
    const bool is_lacking = error.cause() == CompilerError::Cause::unavailable && may_lack_one;
    if (!(is_lacking || error.cause() == CompilerError::Cause::crashed) || settings_.options.strict) throw;
    logger_.warning(std::string(is_lacking ? "only EPContext nodes run here, the others on the CPU: " : "all nodes run on the CPU: ") + error.what());
    return std::nullopt;
  }
}

void Ep::claim(OrtEpGraphSupportInfo* support, const std::vector<const OrtNode*>& nodes) const {
  OrtNodeFusionOptions options{};
  options.ort_version_supported = ORT_API_VERSION;
  // Weights live in the program.
  options.drop_constant_initializers = true;
  check(ort_, ort_.ep->EpGraphSupportInfo_AddNodesToFuse(support, nodes.data(), nodes.size(), &options));
}

void Ep::report(const PlacedModel& placed, std::size_t node_count, const std::vector<Refusal>& refusals) const {
  std::size_t count = 0;
  for (const PlacedModel::Part& part : placed.parts) count += part.nodes.size();
  std::string line = std::to_string(count) + " of " + std::to_string(node_count) + " nodes placed in " + std::to_string(placed.parts.size()) +
                     " programs of " + std::to_string(placed.graph_count) + " graphs (target " + settings_.target + ")";
  if (refusals.empty()) {
    logger_.info(line);
    return;
  }
  logger_.warning(line + "; on the CPU: " + group_reasons(refusals, kReasonsInLine));
  for (const Refusal& refusal : refusals) logger_.verbose("on the CPU: " + refusal.op + " " + refusal.node + ": " + refusal.reason);
}

void Ep::compile_all(std::span<const OrtGraph* const> graphs, std::span<const OrtNode* const> fused_nodes, OrtNodeComputeInfo** infos,
                     OrtNode** context_nodes) {
  std::vector<std::unique_ptr<FusedNode>> made;
  std::vector<OrtOwned<OrtNode>> contexts;
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    OrtNode* context = nullptr;
    made.push_back(compile(graphs[i], fused_nodes[i], context_nodes == nullptr ? nullptr : &context));
    contexts.emplace_back(context, ort_.api->ReleaseNode);
  }
  if (!settings_.options.cache_keys.empty()) write_keys();
  // Nothing fails any more: ONNX Runtime takes everything or nothing.
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    infos[i] = made[i].release();
    if (context_nodes != nullptr) context_nodes[i] = contexts[i].release();
  }
}

void Ep::write_keys() const {
  const std::string text = nlohmann::json{{"made_from", to_json(compiler_->key_parts())}, {"programs", keys_}}.dump(1) + "\n";
  write_atomically(settings_.options.cache_keys, std::as_bytes(std::span(text)));
}

NodeSignature Ep::signature_of(const OrtNode* fused_node) const {
  const auto list = [&](const std::vector<const OrtValueInfo*>& values) {
    std::vector<NodeValue> found;
    for (const OrtValueInfo* value : values) {
      found.push_back({name_of(ort_, value), type_of(ort_, value, known_dims_).value_or(TensorType()), found.size()});
    }
    return found;
  };
  return {name_of(ort_, fused_node), list(inputs_of(ort_, fused_node)), list(outputs_of(ort_, fused_node))};
}

NodeSignature Ep::signature_of_context(const OrtNode* node, const NodeSignature& fused) const {
  // A program's arguments are in the order of its EPContext node, which need not be that of the fused node around it.
  const auto order = [&](const std::vector<const OrtValueInfo*>& values, const std::vector<NodeValue>& known) {
    std::vector<NodeValue> found;
    for (const OrtValueInfo* value : values) {
      const std::string name = name_of(ort_, value);
      const auto match = std::find_if(known.begin(), known.end(), [&](const NodeValue& candidate) { return candidate.name == name; });
      if (match == known.end()) refuse_context(name_of(ort_, node), "nothing gives or takes its value '" + name + "'; compile the model again");
      found.push_back(*match);
    }
    return found;
  };
  return {fused.node, order(inputs_of(ort_, node), fused.inputs), order(outputs_of(ort_, node), fused.outputs)};
}

std::unique_ptr<FusedNode> Ep::compile(const OrtGraph* graph, const OrtNode* fused_node, OrtNode** context_node) {
  if (failure_) throw hipdnn_rt::Error(*failure_);
  const NodeSignature signature = signature_of(fused_node);
  const std::vector<const OrtNode*> nodes = nodes_of(ort_, graph);
  if (nodes.size() == 1 && is_own_context(ort_, nodes.front())) return load(graph, nodes.front(), signature_of_context(nodes.front(), signature), context_node);

  const Interface interface{inputs_of(ort_, fused_node), outputs_of(ort_, fused_node)};
  const bool is_static = std::all_of(signature.inputs.begin(), signature.inputs.end(), [](const NodeValue& value) { return value.type.is_static(); });
  const EncodedModel model = encode_model(ort_, graph, interface, Weights::included, known_dims_);
  if (!settings_.options.cache_keys.empty()) {
    const ProgramKey key = compiler_->program_key(model, !is_static);
    keys_.push_back({{"node", signature.node}, {"nodes", nodes.size()}, {"model", key.model}, {"sizes", key.sizes}, {"key", key.key}});
    return std::make_unique<UnrunnableNode>(ort_, "node '" + signature.node + "' is not compiled: the option 'cache_keys' asks for keys alone");
  }
  if (!is_static) return compile_dynamic(graph, model, signature, context_node);
  const CompiledModel compiled = compiler_->compile(model, signature.node);
  std::unique_ptr<FusedNode> node = make_fused(compiled.program, signature);
  put_in_context(graph, signature, compiled.container, context_node);
  return node;
}

std::unique_ptr<FusedNode> Ep::compile_dynamic(const OrtGraph* graph, const EncodedModel& model, const NodeSignature& signature,
                                            OrtNode** context_node) {
  try {
    const CompiledModel compiled = compiler_->compile_dynamic(model, signature.node);
    std::optional<SizeCompiler> rest;
    const bool is_partial = compiled.program->is_partial() || (!compiled.program->growing() && joins_names(*compiled.program, signature));
    if (is_partial) rest = SizeCompiler{compiler_, compiler_->make_image(model, compiled.program)};
    std::unique_ptr<FusedNode> node = make_fused(compiled.program, signature, std::move(rest));
    put_in_context(graph, signature, compiled.container, context_node);
    return node;
  } catch (const NoDynamicProgram& error) {
    const std::string line = "node '" + signature.node + "' has no dynamic program: " + error.what();
    if (settings_.context.is_enabled) {
      throw hipdnn_rt::Error(line + "; a compiled model needs one: make its dimensions static with the session's free dimension overrides, leave such partitions on the CPU with the option 'dynamic_fallback' = 'cpu', or, for a GPU, list sizes with the option 'buckets'");
    }
    logger_.warning(line + "; it is compiled anew for each input shape");
    return std::make_unique<DynamicNode>(node_settings(), SizeCompiler{compiler_, compiler_->make_image(model)}, signature);
  }
}

std::unique_ptr<FusedNode> Ep::load(const OrtGraph* graph, const OrtNode* node, const NodeSignature& signature, OrtNode** context_node) {
  const ContextProgram stored = read_context(ort_, node, model_path_of(ort_, graph), settings_.context, compatibility_, *settings_.device.device,
                                             settings_.options.allow_code);
  std::unique_ptr<FusedNode> made;
  try {
    made = make_fused(stored.program, signature);
  } catch (const hipdnn_rt::Error& error) {
    refuse_context(name_of(ort_, node), error.what());
  }
  put_in_context(graph, signature, stored.container, context_node);
  return made;
}

std::unique_ptr<FusedNode> Ep::make_fused(std::shared_ptr<const hipdnn_rt::DynamicProgram> program, const NodeSignature& signature,
                                          std::optional<SizeCompiler> rest) const {
  const hipdnn_rt::Device& device = *settings_.device.device;
  if (settings_.context.is_enabled && !device.runs(program->target())) {
    check_arguments(*program, signature_on_buffers(*program, signature));
    return std::make_unique<UnrunnableNode>(ort_, "node '" + signature.node + "' is compiled ahead for target '" + program->target() +
                                                      "', this session's device runs '" + device.target() +
                                                      "': load the compiled model on a machine with that device");
  }
  NodeSettings settings = node_settings();
  const bool rounds = !settings_.options.tf32 && program->allows_tf32();
  if (rounds) settings.device.device = settings_.open_device(true);
  return make_node(settings, weights_->share(std::move(program)), signature, std::move(rest));
}

std::string Ep::compatibility() const {
  const hipdnn_rt::Device& device = *settings_.device.device;
  const std::string target(hipdnn_rt::plain_target(settings_.target));
  return compatibility_text(device.runs(target) ? device.library().version() : kAnyLibrary, target);
}

void Ep::put_in_context(const OrtGraph* graph, const NodeSignature& signature, std::span<const std::byte> container,
                        OrtNode** context_node) {
  if (!settings_.context.is_enabled || context_node == nullptr) return;
  *context_node = make_context_node(ort_, signature, container, settings_.context, model_path_of(ort_, graph), compatibility_);
}

}  // namespace hipdnn_ep
