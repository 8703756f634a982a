#include "onednn_engine.h"

#include <algorithm>
#include <array>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>

#include "onednn_builders.h"
#include "widened_plan.h"

namespace hipdnn_port {

namespace {

using onednn::Builder;

constexpr std::array kBuilders{
    Builder{HIPDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, onednn::convolution_refuses, onednn::build_convolution},
    Builder{HIPDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, onednn::transposed_convolution_refuses,
            onednn::build_transposed_convolution},
    Builder{HIPDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, onednn::matmul_refuses, onednn::build_matmul},
    Builder{HIPDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, onednn::resample_refuses, onednn::build_resample},
    Builder{HIPDNN_BACKEND_OPERATION_LAYERNORM_DESCRIPTOR_EXT, onednn::layernorm_refuses, onednn::build_layernorm},
    Builder{HIPDNN_BACKEND_OPERATION_BATCHNORM_INFERENCE_DESCRIPTOR_EXT, onednn::batchnorm_refuses, onednn::build_batchnorm},
    Builder{HIPDNN_BACKEND_OPERATION_BATCHNORM_INFERENCE_VARIANCE_DESCRIPTOR_EXT, onednn::batchnorm_refuses, onednn::build_batchnorm},
};

const Builder* builder_for(const Graph& graph) {
  if (graph.nodes.empty()) return nullptr;
  const auto found = std::find_if(kBuilders.begin(), kBuilders.end(), [&](const Builder& b) { return b.anchor == graph.nodes[0].type; });
  return found == kBuilders.end() ? nullptr : &*found;
}

/// Must the graph run in float32? oneDNN has 16-bit floats only where the CPU computes with them, none of 8 bits here, and its norms keep parameters in float32.
bool needs_widening(const Builder& builder, const Graph& graph) { return has_narrow_tensors(graph) && builder.refuses(graph).has_value(); }

std::unique_ptr<Plan> build_primitives(const Builder& builder, const Graph& graph, const PlanOptions& options) {
  try {
    return builder.build(graph, options);
  } catch (const dnnl::error& error) {
    throw std::runtime_error(std::string("oneDNN: ") + error.what());
  }
}

class OnednnEngine final : public Engine {
 public:
  std::string_view name() const override { return "HOST_ONEDNN_ENGINE"; }

  std::optional<std::string> refuses(const Graph& graph) const override {
    const Builder* builder = builder_for(graph);
    if (builder == nullptr) {
      return "the first node is none of convolution forward, convolution backward-data, matmul, resample, layer norm, batch norm inference";
    }
    if (rounds_inside(graph)) return "a value between nodes is rounded to 8 bits";
    if (!needs_widening(*builder, graph)) return builder->refuses(graph);
    if (const auto reason = builder->refuses(widened(graph))) return reason;
    return refuses_conversions(graph);
  }

  std::unique_ptr<Plan> build(const Graph& graph, const PlanOptions& options) const override {
    if (const auto reason = refuses(graph)) throw std::runtime_error(*reason);
    const Builder& builder = *builder_for(graph);
    if (!needs_widening(builder, graph)) {
      try {
        return build_primitives(builder, graph, options);
      } catch (const std::runtime_error&) {
        // Which 16-bit convolutions oneDNN has on a CPU depends on sizes, layouts and epilogue; float32 has them all.
        if (!has_narrow_tensors(graph) || builder.refuses(widened(graph)) || refuses_conversions(graph)) throw;
      }
    }
    return build_widened(graph, options, [&](const Graph& wide, const PlanOptions& wide_options) {
      return build_primitives(builder, wide, wide_options);
    });
  }
};

}  // namespace

const Engine& onednn_engine() {
  static const OnednnEngine engine;
  return engine;
}

}  // namespace hipdnn_port
