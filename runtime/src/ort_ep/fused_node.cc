#include "fused_node.h"

#include <array>

#include "device/error.h"
#include "growing_node.h"

namespace hipdnn_ep {

FusedNode::FusedNode(const Ort& ort) : OrtNodeComputeInfo{}, ort_(ort) {
  ort_version_supported = ORT_API_VERSION;
  // The state is this object; ONNX Runtime passes it back to every run.
  CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) noexcept -> OrtStatus* {
    *state = static_cast<FusedNode*>(self);
    return nullptr;
  };
  Compute = [](OrtNodeComputeInfo*, void* state, OrtKernelContext* context) noexcept -> OrtStatus* {
    auto* node = static_cast<FusedNode*>(state);
    return guard(node->ort_, [&] { node->run(context); });
  };
  ReleaseState = [](OrtNodeComputeInfo*, void*) noexcept {};
}

void UnrunnableNode::run(OrtKernelContext*) { throw hipdnn_rt::ProgramError(reason_); }

SizedNode::SizedNode(const NodeSettings& settings, NodeSignature signature)
    : FusedNode(settings.ort), settings_(settings), signature_(std::move(signature)), programs_(settings.max_specializations) {}

void SizedNode::run(OrtKernelContext* context) {
  /// Room for the dims of some dozens of inputs.
  std::array<std::byte, 2048> room;
  std::pmr::monotonic_buffer_resource memory(room.data(), room.size());
  Key key(&memory);
  key.reserve(room.size() / sizeof(std::int64_t) / 2);
  read_key(context, key);
  if (const std::shared_ptr<NodeProgram> program = programs_.find(key)) return program->run(context);
  run_new(context, key);
}

void SizedNode::run_new(OrtKernelContext* context, const Key& key) {
  InputDims dims;
  for (auto position = key.begin(); position != key.end();) {
    const auto rank = static_cast<std::size_t>(*position++);
    dims.emplace_back(position, rank);
    position += static_cast<std::ptrdiff_t>(rank);
  }
  check_dims(dims);
  const std::vector<std::vector<std::int64_t>> larger = filled(dims);
  if (larger.empty()) return programs_.get(key, [&] { return make(dims); })->run(context);
  get(larger)->run_filled(context, dims);
  const std::vector<std::vector<std::int64_t>> following = next({larger.begin(), larger.end()});
  if (following.empty() || settings_.max_specializations < 2) return;
  try {
    static_cast<void>(get(following));
  } catch (const hipdnn_rt::Error&) {  // the run that needs it says so
  }
}

std::shared_ptr<NodeProgram> SizedNode::get(const std::vector<std::vector<std::int64_t>>& dims) {
  std::vector<std::int64_t> key;
  for (const auto& each : dims) {
    key.push_back(static_cast<std::int64_t>(each.size()));
    key.insert(key.end(), each.begin(), each.end());
  }
  return programs_.get(key, [&] { return make({dims.begin(), dims.end()}); });
}

void SizedNode::read_key(OrtKernelContext* context, Key& key) const {
  const OrtApi& api = *settings_.ort.api;
  for (const NodeValue& input : signature_.inputs) {
    const OrtValue* value = nullptr;
    check(settings_.ort, api.KernelContext_GetInput(context, input.index, &value));
    if (value == nullptr) throw hipdnn_rt::InputError("input '" + input.name + "' is missing");
    OrtTensorTypeAndShapeInfo* raw = nullptr;
    check(settings_.ort, api.GetTensorTypeAndShape(value, &raw));
    const OrtOwned<OrtTensorTypeAndShapeInfo> info(raw, api.ReleaseTensorTypeAndShapeInfo);
    std::size_t rank = 0;
    check(settings_.ort, api.GetDimensionsCount(raw, &rank));
    key.push_back(static_cast<std::int64_t>(rank));
    key.resize(key.size() + rank);
    if (rank > 0) check(settings_.ort, api.GetDimensions(raw, key.data() + key.size() - rank, rank));
  }
}

std::shared_ptr<NodeProgram> SizedNode::compile(const SizeCompiler& compiler, const InputDims& dims) const {
  InputShapes shapes;
  for (std::size_t i = 0; i < dims.size(); ++i) shapes[signature_.inputs[i].name] = {dims[i].begin(), dims[i].end()};
  const CompiledModel compiled = compiler.compiler->compile(compiler.image, signature_.node, shapes);
  return std::make_shared<NodeProgram>(settings_.ort, settings_.device, compiled.program->at({}), signature_, settings_.sinks);
}

DynamicProgramNode::DynamicProgramNode(const NodeSettings& settings, std::shared_ptr<const hipdnn_rt::DynamicProgram> program, NodeSignature signature,
                   std::optional<SizeCompiler> rest)
    : SizedNode(settings, std::move(signature)), program_(std::move(program)), rest_(std::move(rest)) {
  check_arguments(*program_, this->signature());
  constants_ = settings.weights->upload(*settings.device.device, *program_);
}

void DynamicProgramNode::check_dims(const InputDims& dims) const {
  if (!rest_) static_cast<void>(program_->sizes_of(dims));
}

std::vector<std::vector<std::int64_t>> DynamicProgramNode::filled(const InputDims& dims) const {
  try {
    const hipdnn_rt::Sizes sizes = program_->sizes_of(dims), larger = program_->filled(sizes);
    if (larger != sizes) return program_->input_dims(larger);
  } catch (const hipdnn_rt::InputError&) {
    // Dims that the program does not hold for are refused, or compiled for, as they are.
  }
  return {};
}

std::vector<std::vector<std::int64_t>> DynamicProgramNode::next(const InputDims& dims) const {
  const std::optional<hipdnn_rt::Sizes> step = program_->step_behind(program_->sizes_of(dims));
  return step ? program_->input_dims(*step) : std::vector<std::vector<std::int64_t>>();
}

std::shared_ptr<NodeProgram> DynamicProgramNode::make(const InputDims& dims) const {
  hipdnn_rt::Sizes sizes;
  std::shared_ptr<const hipdnn_rt::Program> specialization;
  try {
    sizes = program_->sizes_of(dims);  // sizes that the program has for equal may differ where one is 1
    specialization = program_->at(sizes);
  } catch (const hipdnn_rt::InputError&) {
    if (!rest_) throw;
    return compile(*rest_, dims);
  }
  return load_program(settings(), *program_, sizes, std::move(specialization), signature(), constants_);
}

std::shared_ptr<NodeProgram> load_program(const NodeSettings& settings, const hipdnn_rt::DynamicProgram& program, const hipdnn_rt::Sizes& sizes,
                                          std::shared_ptr<const hipdnn_rt::Program> specialization, const NodeSignature& signature,
                                          std::shared_ptr<const hipdnn_rt::ConstantMemory> constants) {
  try {
    return std::make_shared<NodeProgram>(settings.ort, settings.device, std::move(specialization), signature, settings.sinks, std::move(constants));
  } catch (const hipdnn_rt::PlanRefusedError& error) {
    throw hipdnn_rt::InputError("the device does not take " + program.describe(sizes) + ": " + error.what());
  }
}

std::unique_ptr<FusedNode> make_node(const NodeSettings& settings, std::shared_ptr<const hipdnn_rt::DynamicProgram> program,
                                     NodeSignature signature, std::optional<SizeCompiler> rest) {
  if (program->growing()) return std::make_unique<GrowingNode>(settings, std::move(program), std::move(signature), std::move(rest));
  if (!program->is_static()) return std::make_unique<DynamicProgramNode>(settings, std::move(program), std::move(signature), std::move(rest));
  check_arguments(*program, signature);
  auto only = std::make_unique<NodeProgram>(settings.ort, settings.device, program->at({}), std::move(signature), settings.sinks,
                                            settings.weights->upload(*settings.device.device, *program));
  return std::make_unique<StaticNode>(settings.ort, std::move(only));
}

}  // namespace hipdnn_ep
