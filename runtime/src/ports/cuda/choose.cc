#include "choose.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "frontend/status.h"

namespace hipdnn_cuda {
namespace {

constexpr std::int64_t most_candidates = 64, most_knobs = 64;
/// Fewer proposals than this of the first heuristic are worth asking the second, slower one.
constexpr std::size_t enough_candidates = 8;

/// Engine configurations that a heuristic proposes, best first; none where it fails, and then why.
std::vector<CudnnDescriptor> ask(const CudnnGraph& graph, int mode, std::string& failure) {
  CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set_descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph.raw());
  heuristic.set_enumerator(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  try {
    heuristic.finalize("the heuristic");
  } catch (const hipdnn_port::StatusError&) {
    throw;
  } catch (const std::runtime_error& error) {
    failure = error.what();
    return {};
  }
  std::int64_t count = 0;
  check_cudnn(cudnn().get_attribute(heuristic.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
              "the heuristic's results");
  count = std::min(count, most_candidates);
  std::vector<CudnnDescriptor> configurations;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    configurations.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configurations.back().raw());
  }
  std::int64_t filled = 0;
  check_cudnn(cudnn().get_attribute(heuristic.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &filled, raw.data()),
              "the heuristic's results");
  configurations.erase(configurations.begin() + std::min(filled, count), configurations.end());
  return configurations;
}

struct EngineFacts {
  std::int64_t index = -1;
  /// On tensor cores, which take f32 only as TF32, or by converting operands.
  bool rounds_f32 = false;
};

constexpr const char* needs_tf32 = "every engine rounds f32 to TF32; allow that with Session(tf32=True) or --tf32";

EngineFacts facts_of(const CudnnDescriptor& configuration) {
  EngineFacts facts;
  const CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.raw();
  std::int64_t count = 0;
  if (cudnn().get_attribute(configuration.raw(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw) !=
      CUDNN_STATUS_SUCCESS) {
    return facts;
  }
  facts.index = engine.integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  std::array<int, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  if (cudnn().get_attribute(engine.raw(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, notes.size(), &count, notes.data()) ==
      CUDNN_STATUS_SUCCESS) {
    const auto end = notes.begin() + std::min<std::ptrdiff_t>(count, notes.size());
    facts.rounds_f32 = std::any_of(notes.begin(), end, [](int note) {
      return note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    });
  }
  return facts;
}

/// What is computed for each element alone: nothing for tensor cores to do.
bool is_elementwise_type(hipdnnBackendDescriptorType_t type) {
  return type == HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR || type == HIPDNN_BACKEND_OPERATION_BATCHNORM_INFERENCE_DESCRIPTOR_EXT ||
         type == HIPDNN_BACKEND_OPERATION_BATCHNORM_INFERENCE_VARIANCE_DESCRIPTOR_EXT;
}

/// Whether an operand is multiplied: of attention, queries, keys and values are, a mask is not.
bool is_factor(const hipdnn_port::Node& node, hipdnnBackendAttributeName_t name) {
  if (hipdnn_port::is_output_attribute(node.type, name)) return false;
  return node.type != HIPDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR || name == HIPDNN_ATTR_OPERATION_SDPA_FWD_QDESC ||
         name == HIPDNN_ATTR_OPERATION_SDPA_FWD_KDESC || name == HIPDNN_ATTR_OPERATION_SDPA_FWD_VDESC;
}

/// Whether the graph multiplies f32 by f32 and adds.
bool has_f32_sums(const hipdnn_port::Graph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const hipdnn_port::Node& node) {
    if (is_elementwise_type(node.type)) return false;
    return std::ranges::any_of(node.tensors, [&](const auto& entry) {
      return is_factor(node, entry.first) && graph.tensor(entry.second.front()).dtype == HIPDNN_DATA_FLOAT;
    });
  });
}

/// Engine 7 of cuDNN 9.14 and 9.19 answers garbage for f16 convolutions of 7x7 at batch 1 (bench/gpu/executables.py); its matmuls are right.
bool is_distrusted(std::int64_t engine, const hipdnn_port::Graph& graph) {
  return engine == 7 && std::ranges::any_of(graph.nodes, [](const hipdnn_port::Node& node) {
           return node.type == HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
         });
}

/// The knobs of a configuration; none where cuDNN does not tell.
std::vector<std::pair<std::int64_t, std::int64_t>> knobs_of(const CudnnDescriptor& configuration) {
  // cuDNN tells no count before: room for more than there are types of knobs.
  std::int64_t count = 0;
  std::vector<CudnnDescriptor> choices;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < most_knobs; ++i) {
    choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    raw.push_back(choices.back().raw());
  }
  std::int64_t filled = 0;
  if (cudnn().get_attribute(configuration.raw(), CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                            static_cast<std::int64_t>(raw.size()), &filled, raw.data()) != CUDNN_STATUS_SUCCESS) {
    return {};
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> knobs;
  for (std::size_t i = 0; i < std::min(choices.size(), static_cast<std::size_t>(std::max<std::int64_t>(filled, 0))); ++i) {
    std::int32_t type = 0;
    std::int64_t value = 0;
    const bool is_told =
        cudnn().get_attribute(raw[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &count, &type) == CUDNN_STATUS_SUCCESS &&
        cudnn().get_attribute(raw[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &count, &value) == CUDNN_STATUS_SUCCESS;
    if (is_told) knobs.emplace_back(type, value);
  }
  std::ranges::sort(knobs);
  return knobs;
}

/// Whether the graph begins with a matmul of f32. No engine of cuDNN 9.19 computes one exactly, and engine 0 has no note of that.
bool is_f32_matmul(const hipdnn_port::Graph& graph) {
  return !graph.nodes.empty() && graph.nodes.front().type == HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR && has_f32_sums(graph);
}

/// Why an engine must not run a graph; empty where it may.
std::string why_not(const EngineFacts& facts, const hipdnn_port::Graph& described, const VendorHandle& handle) {
  if (is_distrusted(facts.index, described)) return "engine " + std::to_string(facts.index) + " is not trusted with such graphs";
  if (!handle.allows_tf32() && (is_f32_matmul(described) || (facts.rounds_f32 && has_f32_sums(described)))) return needs_tf32;
  return {};
}

}  // namespace

std::vector<std::shared_ptr<const Configured>> propose(const hipdnn_port::Graph& described, const VendorHandle& handle, std::string& reason) {
  const auto graph = std::make_shared<const CudnnGraph>(translate(described, handle.raw()));
  reason = "no engine is proposed";
  std::vector<std::shared_ptr<const Configured>> proposals;
  for (const int mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    if (mode == CUDNN_HEUR_MODE_B && proposals.size() >= enough_candidates) continue;
    for (CudnnDescriptor& configuration : ask(*graph, mode, reason)) {
      const EngineFacts facts = facts_of(configuration);
      if (std::string why = why_not(facts, described, handle); !why.empty()) {
        reason = std::move(why);
        continue;
      }
      auto knobs = knobs_of(configuration);
      const auto is_same = [&](const auto& other) { return other->engine == facts.index && other->knobs == knobs && !knobs.empty(); };
      if (std::ranges::any_of(proposals, is_same)) continue;
      proposals.push_back(std::make_shared<const Configured>(graph, std::nullopt, std::move(configuration), facts.index, std::move(knobs)));
    }
  }
  return proposals;
}

std::shared_ptr<const Configured> configure(const hipdnn_port::Graph& described, const VendorHandle& handle, std::int64_t engine) {
  auto graph = std::make_shared<const CudnnGraph>(translate(described, handle.raw()));
  CudnnDescriptor chosen(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  chosen.set_descriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph->graph.raw());
  chosen.set_integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, engine);
  chosen.finalize("engine " + std::to_string(engine));
  CudnnDescriptor configuration(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  configuration.set_descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, chosen.raw());
  configuration.finalize("the configuration of engine " + std::to_string(engine));
  EngineFacts facts = facts_of(configuration);
  facts.index = engine;
  if (const std::string why = why_not(facts, described, handle); !why.empty()) throw std::runtime_error(why);
  return std::make_shared<const Configured>(std::move(graph), std::move(chosen), std::move(configuration), engine);
}

}  // namespace hipdnn_cuda
