// One builder per kind of graph the oneDNN engine takes: why it refuses a graph, and its plan.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "frontend/engine.h"

namespace hipdnn_port::onednn {

/// Rules and construction for graphs that start with one operation. Stateless; graphs given to it have their anchor as node 0.
struct Builder {
  hipdnnBackendDescriptorType_t anchor;
  std::optional<std::string> (*refuses)(const Graph& graph);
  std::unique_ptr<Plan> (*build)(const Graph& graph, const PlanOptions& options);
};

std::optional<std::string> convolution_refuses(const Graph& graph);
std::unique_ptr<Plan> build_convolution(const Graph& graph, const PlanOptions& options);

std::optional<std::string> transposed_convolution_refuses(const Graph& graph);
std::unique_ptr<Plan> build_transposed_convolution(const Graph& graph, const PlanOptions& options);

std::optional<std::string> matmul_refuses(const Graph& graph);
std::unique_ptr<Plan> build_matmul(const Graph& graph, const PlanOptions& options);

std::optional<std::string> resample_refuses(const Graph& graph);
std::unique_ptr<Plan> build_resample(const Graph& graph, const PlanOptions& options);

std::optional<std::string> layernorm_refuses(const Graph& graph);
std::unique_ptr<Plan> build_layernorm(const Graph& graph, const PlanOptions& options);

std::optional<std::string> batchnorm_refuses(const Graph& graph);
std::unique_ptr<Plan> build_batchnorm(const Graph& graph, const PlanOptions& options);

}  // namespace hipdnn_port::onednn
