#include "choose.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "time_plan.h"

namespace hipdnn_cuda {
namespace {

constexpr std::int64_t most_candidates = 64;

int number_from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? 0 : std::max(0, std::atoi(value));
}

/// Engine configurations that a heuristic proposes, best first; none where it fails, and then why.
std::vector<CudnnDescriptor> propose(const CudnnGraph& graph, int mode, std::string& failure) {
  CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set_descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph.raw());
  heuristic.set_enumerator(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (const cudnnStatus_t status = heuristic.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
    failure = describe_cudnn(status);
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

/// Engine 7 of cuDNN 9.14 was seen to answer garbage for f16 convolutions of 7x7 at batch 1 (bench/gpu/executables.py); its products are right.
bool is_distrusted(std::int64_t engine, const hipdnn_port::Graph& graph) {
  return engine == 7 && std::ranges::any_of(graph.nodes, [](const hipdnn_port::Node& node) {
    return node.type == HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
  });
}

/// Whether the graph multiplies f32 by f32.
bool has_f32_products(const hipdnn_port::Graph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const hipdnn_port::Node& node) {
    if (node.type == HIPDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) return false;
    return std::ranges::any_of(node.tensors, [&](const auto& entry) {
      return !hipdnn_port::is_output_attribute(node.type, entry.first) &&
             graph.tensors[static_cast<std::size_t>(entry.second.front())].dtype == HIPDNN_DATA_FLOAT;
    });
  });
}

}  // namespace

Choice Choice::from_environment() {
  return {.allows_tf32 = number_from_environment("HIPDNN_CUDA_TF32") != 0, .timed_plans = number_from_environment("HIPDNN_CUDA_TUNE")};
}

Chosen choose_plan(const CudnnGraph& graph, const hipdnn_port::Graph& described, cudnnHandle_t handle, const Choice& choice) {
  std::optional<Chosen> best;
  double best_us = 0;
  int timed = 0;
  const bool must_be_exact = !choice.allows_tf32 && has_f32_products(described);
  std::string last_reason = "no engine is proposed";
  for (const int mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    if (mode == CUDNN_HEUR_MODE_B && choice.timed_plans == 0) continue;
    if (best && mode == CUDNN_HEUR_MODE_FALLBACK) break;
    for (const CudnnDescriptor& configuration : propose(graph, mode, last_reason)) {
      const EngineFacts facts = facts_of(configuration);
      if (is_distrusted(facts.index, described)) continue;
      if (facts.rounds_f32 && must_be_exact) {
        last_reason = "every engine rounds f32 to TF32; HIPDNN_CUDA_TF32=1 allows that";
        continue;
      }
      CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
      plan.set_descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration.raw());
      if (const cudnnStatus_t status = plan.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
        last_reason = describe_cudnn(status);
        continue;
      }
      const std::int64_t workspace = plan.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
      const std::string name = "engine " + std::to_string(facts.index);
      if (choice.timed_plans == 0) return {std::move(plan), workspace, name};
      const std::optional<double> us = time_plan(plan, workspace, graph, described, handle);
      if (!us) {
        last_reason = name + " builds a plan that does not run";
        continue;
      }
      if (!best || *us < best_us) {
        best_us = *us;
        best.emplace(Chosen{std::move(plan), workspace, name + ", " + std::to_string(*us) + " us when timed"});
      }
      if (++timed == choice.timed_plans) return std::move(*best);
    }
  }
  if (!best) throw std::runtime_error("cuDNN " + std::string(cudnn_version()) + " has no plan: " + last_reason);
  return std::move(*best);
}

}  // namespace hipdnn_cuda
