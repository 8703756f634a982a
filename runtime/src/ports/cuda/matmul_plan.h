// Matmuls on cuBLASLt: its algorithms for a matmul, and a plan of one of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cublas_lt_abi.h"
#include "frontend/engine.h"
#include "matmul.h"
#include "vendor_handle.h"

namespace hipdnn_cuda {

/// How cuBLASLt is to compute a matmul.
struct ConfiguredMatmul {
  Matmul matmul;
  bool rounds_f32 = false;
  cublasLtMatmulAlgo_t algorithm{};
  std::size_t workspace_bytes = 0;
  /// What the algorithm consists of, by name.
  std::vector<std::pair<std::string, std::int64_t>> knobs{};
};

/// What cuBLASLt's heuristic proposes, best first and at most `most`. The current context is the handle's. Throws std::runtime_error with its reason.
std::vector<std::shared_ptr<const ConfiguredMatmul>> propose_matmuls(const Matmul& matmul, const VendorHandle& handle, int most);

/// A plan of a proposal.
std::unique_ptr<hipdnn_port::Plan> build_matmul_plan(std::shared_ptr<const ConfiguredMatmul> configured);

}  // namespace hipdnn_cuda
