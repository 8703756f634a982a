#include "engine_plugin/host_engines.h"

#include <algorithm>
#include <array>
#include <memory>

#include "device/error.h"
#include "engine_plugin/failure.h"
#include "engine_plugin/tensor_value.h"
#include "plan/variant_pack.h"

namespace hipdnn_plugin {
namespace {

using hipdnn_rt::Descriptor;
using hipdnn_rt::DescriptorSpec;
using hipdnn_rt::Handle;
using hipdnn_rt::Library;

constexpr std::size_t workspace_alignment = 64;  // the host library's
constexpr std::string_view graph_label = "graph";

Handle make_handle(int threads) {
  const auto& library = host_library();
  hipdnnHandle_t raw = nullptr;
  check(library->hipdnn(), library->hipdnn().create(&raw), "hipdnnCreate");
  Handle handle(library, raw);
  if (threads > 0) check(library->hipdnn(), library->hipdnn().set_threads(raw, threads), "hipdnnHostSetThreads_ext");
  return handle;
}

std::vector<Descriptor> build(const Handle& handle, std::span<const DescriptorSpec> graph) {
  return hipdnn_rt::build_descriptors(host_library(), handle.get(), graph, std::string(graph_label));
}

Descriptor engine_descriptor(const Descriptor& graph, std::int64_t id) {
  Descriptor engine(host_library(), HIPDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set_descriptor(HIPDNN_ATTR_ENGINE_OPERATION_GRAPH, graph, "engine");
  engine.set(HIPDNN_ATTR_ENGINE_GLOBAL_INDEX, HIPDNN_TYPE_INT64, 1, &id, "engine");
  return engine;
}

std::vector<HostEngine> list_engines() {
  const Handle handle = make_handle(0);
  const hipdnn_rt::HipdnnApi& api = host_library()->hipdnn();
  std::size_t count = 0;
  check(api, api.get_engine_count(handle.get(), &count), "hipdnnGetEngineCount_ext");
  std::vector<HostEngine> engines;
  for (std::size_t i = 0; i < count; ++i) {
    std::array<std::array<char, 128>, 4> texts{};
    std::array<std::size_t, 4> lengths{};
    lengths.fill(texts[0].size());
    std::int64_t id = 0;
    check(api, api.get_engine_info(handle.get(), i, &id, texts[0].data(), &lengths[0], texts[1].data(), &lengths[1], texts[2].data(), &lengths[2],
                                   texts[3].data(), &lengths[3]),
          "hipdnnGetEngineInfo_ext");
    engines.push_back({id, texts[0].data()});
  }
  return engines;
}

/// The tensors of a graph that have memory, which the graph writes where it says so.
std::vector<Operand> operands_of(std::span<const DescriptorSpec> graph, const Descriptor& built) {
  const std::string what(graph_label);
  const auto name = hipdnn_rt::extension_attribute(HIPDNN_ATTR_OPERATIONGRAPH_RESULT_UIDS_MLIR_EXT);
  std::int64_t count = built.get_count(name, HIPDNN_TYPE_INT64, what);
  std::vector<std::int64_t> results(static_cast<std::size_t>(count));
  check(host_library()->hipdnn(), host_library()->hipdnn().get_attribute(built.get(), name, HIPDNN_TYPE_INT64, count, &count, results.data()), what);
  std::vector<Operand> operands;
  for (const DescriptorSpec& spec : graph) {
    const bool has_memory = find_attribute(spec, HIPDNN_ATTR_TENSOR_IS_VIRTUAL) == nullptr && find_attribute(spec, HIPDNN_ATTR_TENSOR_VALUE_EXT) == nullptr;
    if (spec.type != HIPDNN_BACKEND_TENSOR_DESCRIPTOR || !has_memory) continue;
    const auto dims = hipdnn_rt::values_of<std::int64_t>(spec, HIPDNN_ATTR_TENSOR_DIMENSIONS);
    const auto strides = hipdnn_rt::values_of<std::int64_t>(spec, HIPDNN_ATTR_TENSOR_STRIDES);
    std::int64_t last = 0;  // the library has checked that the address fits
    for (std::size_t i = 0; i < dims.size(); ++i) last += (dims[i] - 1) * strides[i];
    const auto type = static_cast<hipdnnDataType_t>(hipdnn_rt::values_of<std::int32_t>(spec, HIPDNN_ATTR_TENSOR_DATA_TYPE).at(0));
    const std::int64_t uid = hipdnn_rt::values_of<std::int64_t>(spec, HIPDNN_ATTR_TENSOR_UNIQUE_ID).at(0);
    operands.push_back({uid, static_cast<std::size_t>(last + 1) * element_bytes(type), std::ranges::find(results, uid) != results.end()});
  }
  return operands;
}

}  // namespace

const std::shared_ptr<const Library>& host_library() {
  // Opened, not linked: a process that runs AMD's backend has functions of the same names, which a linked library might get instead.
  static const auto library = Library::open("host");
  return library;
}

const std::vector<HostEngine>& host_engines() {
  static const auto engines = list_engines();
  return engines;
}

std::vector<std::int64_t> applicable_engines(const ReadGraph& graph) {
  std::vector<std::int64_t> ids;
  if (graph.takes_overrides && graph.has_virtual_tensors) {
    log(HIPDNN_SEV_INFO, "no engine takes a graph whose shapes may change, where others follow from them");
    return ids;
  }
  const Handle handle = make_handle(0);
  try {
    const std::vector<Descriptor> built = build(handle, graph.descriptors);
    for (const HostEngine& engine : host_engines()) {
      Descriptor descriptor = engine_descriptor(built.back(), engine.id);
      if (descriptor.try_finalize() == HIPDNN_STATUS_SUCCESS) ids.push_back(engine.id);
      else log(HIPDNN_SEV_INFO, hipdnn_rt::take_last_error(host_library()->hipdnn()));
    }
  } catch (const hipdnn_rt::LibraryError& error) {
    if (!error.is_refusal()) throw;
    log(HIPDNN_SEV_INFO, "no engine takes the graph: " + std::string(error.what()));
  }
  return ids;
}

HostPlan::HostPlan(std::span<const DescriptorSpec> graph, const EngineConfig& config) {
  if (std::ranges::find(host_engines(), config.engine_id, &HostEngine::id) == host_engines().end()) {
    refuse_value("there is no engine " + std::to_string(config.engine_id));
  }
  handle_ = make_handle(config.threads);
  const std::vector<Descriptor> built = build(handle_, graph);
  Descriptor engine = engine_descriptor(built.back(), config.engine_id);
  engine.finalize("engine");
  Descriptor configuration(host_library(), HIPDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  configuration.set_descriptor(HIPDNN_ATTR_ENGINECFG_ENGINE, engine, "engine configuration");
  configuration.finalize("engine configuration");
  plan_ = Descriptor(host_library(), HIPDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan_.set_descriptor(HIPDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration, "plan");
  plan_.finalize("plan");
  operands_ = operands_of(graph, built.back());
  planned_bytes_ = static_cast<std::size_t>(plan_.get_int64(HIPDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, "plan"));
}

std::size_t HostPlan::workspace_bytes() const { return planned_bytes_ == 0 ? 0 : planned_bytes_ + workspace_alignment - 1; }

void HostPlan::execute(void* workspace, std::span<const hipdnnPluginDeviceBuffer_t> buffers, const Hip* hip, hipStream_t stream) const {
  if (hip == nullptr) return execute_here(workspace, buffers);
  StagedMemory staged(*hip, stream, operands_, buffers, workspace_bytes());
  execute_here(staged.workspace(), staged.buffers());
  staged.finish();
}

void HostPlan::execute_here(void* workspace, std::span<const hipdnnPluginDeviceBuffer_t> buffers) const {
  if (planned_bytes_ > 0) {
    require(static_cast<char*>(workspace), "workspace");
    std::size_t room = workspace_bytes();
    std::align(workspace_alignment, planned_bytes_, workspace, room);
  }
  std::vector<std::int64_t> uids;
  std::vector<void*> pointers;
  for (const hipdnnPluginDeviceBuffer_t& buffer : buffers) {
    if (buffer.ptr == nullptr) continue;  // of an optional tensor
    uids.push_back(buffer.uid);
    pointers.push_back(buffer.ptr);
  }
  try {
    const Descriptor pack = hipdnn_rt::make_variant_pack(host_library(), uids, pointers, workspace, "execution");
    check(host_library()->hipdnn(), host_library()->hipdnn().execute(handle_.get(), plan_.get(), pack.get()), "execution");
  } catch (const hipdnn_rt::LibraryError& error) {
    throw Failure(error.is_refusal() ? HIPDNN_PLUGIN_STATUS_BAD_PARAM : HIPDNN_PLUGIN_STATUS_INTERNAL_ERROR, error.what());
  }
}

}  // namespace hipdnn_plugin
