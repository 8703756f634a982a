// Which of cuDNN's engines runs a graph.
#pragma once

#include <string>

#include "translate.h"

namespace hipdnn_cuda {

/// What the process's environment says about the choice of engines.
struct Choice {
  /// HIPDNN_CUDA_TF32=1: products of f32 may round their operands to TF32.
  bool allows_tf32 = false;
  /// HIPDNN_CUDA_TUNE=N: time the first N plans and take the fastest; 0 takes the first that builds.
  int timed_plans = 0;

  static Choice from_environment();
};

struct Chosen {
  CudnnDescriptor plan;
  std::int64_t workspace_bytes;
  /// "engine 38" and, where it was timed, how long it took.
  std::string description;
};

/// Throws std::runtime_error where no engine builds a plan, with cuDNN's last reason.
Chosen choose_plan(const CudnnGraph& graph, const hipdnn_port::Graph& described, cudnnHandle_t handle, const Choice& choice);

}  // namespace hipdnn_cuda
