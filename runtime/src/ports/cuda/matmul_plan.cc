#include "matmul_plan.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <stdexcept>

#include "cublas_lt.h"
#include "frontend/status.h"
#include "kernel_order.h"

namespace hipdnn_cuda {
namespace {

/// What NVIDIA recommends for Hopper.
constexpr std::uint64_t most_workspace_bytes = std::uint64_t{32} << 20;
/// More than this makes no difference to the library.
constexpr std::int64_t most_alignment = 256;
/// Bias pointers whose description is kept: as many as there are likely to be steps of one plan.
constexpr std::size_t kept_descriptions = 256;

constexpr std::array<std::pair<int, const char*>, 7> knob_names{{{CUBLASLT_ALGO_CONFIG_ID, "ALGORITHM"},
                                                                 {CUBLASLT_ALGO_CONFIG_TILE_ID, "TILE"},
                                                                 {CUBLASLT_ALGO_CONFIG_STAGES_ID, "STAGES"},
                                                                 {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, "SPLIT_K"},
                                                                 {CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, "REDUCTION"},
                                                                 {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, "SWIZZLING"},
                                                                 {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, "OPTION"}}};
/// These are of 16 bits.
constexpr std::array<std::pair<int, const char*>, 2> narrow_knob_names{
    {{CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, "INNER_SHAPE"}, {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, "CLUSTER"}}};

int type_of(hipdnnDataType_t dtype) {
  switch (dtype) {
    case HIPDNN_DATA_FLOAT: return CUDA_R_32F;
    case HIPDNN_DATA_HALF: return CUDA_R_16F;
    case HIPDNN_DATA_BFLOAT16: return CUDA_R_16BF;
    case HIPDNN_DATA_FP8_E4M3: return CUDA_R_8F_E4M3;
    case HIPDNN_DATA_FP8_E5M2: return CUDA_R_8F_E5M2;
    default: throw std::runtime_error("matmuls are of f32 and narrower floats");
  }
}

template <class Set, class Raw, class Value>
void set(Set function, Raw object, int attribute, const Value& value) {
  check_cublas_lt(function(object, attribute, &value, sizeof value), "attribute " + std::to_string(attribute));
}

MatmulDescription describe(const ConfiguredMatmul& configured, const void* bias) {
  const CublasLt& api = *cublas_lt();
  const Matmul& matmul = configured.matmul;
  cublasLtMatmulDesc_t raw = nullptr;
  check_cublas_lt(api.description_create(&raw, configured.rounds_f32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
                  "cublasLtMatmulDescCreate");
  MatmulDescription made(raw);
  const auto operation = [](const Matrix& matrix) { return std::int32_t{matrix.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N}; };
  set(api.description_set, raw, CUBLASLT_MATMUL_DESC_TRANSA, operation(matmul.left));
  set(api.description_set, raw, CUBLASLT_MATMUL_DESC_TRANSB, operation(matmul.right));
  std::int32_t epilogue = matmul.bias_operand ? CUBLASLT_EPILOGUE_BIAS : 0;
  if (matmul.activation == Activation::relu) epilogue |= CUBLASLT_EPILOGUE_RELU;
  if (matmul.activation == Activation::gelu_tanh) epilogue |= CUBLASLT_EPILOGUE_GELU;
  set(api.description_set, raw, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue != 0 ? epilogue : std::int32_t{CUBLASLT_EPILOGUE_DEFAULT});
  if (matmul.bias_operand) set(api.description_set, raw, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  return made;
}

MatrixLayout layout_of(const Matmul& matmul, const Matrix& matrix, hipdnnDataType_t dtype) {
  const CublasLt& api = *cublas_lt();
  cublasLtMatrixLayout_t raw = nullptr;
  check_cublas_lt(api.layout_create(&raw, type_of(dtype), static_cast<std::uint64_t>(matrix.rows), static_cast<std::uint64_t>(matrix.columns),
                                    matrix.leading),
                  "cublasLtMatrixLayoutCreate");
  MatrixLayout made(raw);
  if (matmul.batch > 1) {
    set(api.layout_set, raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(matmul.batch));
    set(api.layout_set, raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.batch_stride);
  }
  return made;
}

struct Layouts {
  explicit Layouts(const Matmul& matmul)
      : left(layout_of(matmul, matmul.left, matmul.left_dtype)),
        right(layout_of(matmul, matmul.right, matmul.right_dtype)),
        result(layout_of(matmul, matmul.result, matmul.dtype)),
        addend(layout_of(matmul, matmul.addend ? *matmul.addend : matmul.result, matmul.dtype)) {}
  MatrixLayout left, right, result, addend;
};

MatmulPreference preference(const Matmul& matmul) {
  const CublasLt& api = *cublas_lt();
  cublasLtMatmulPreference_t raw = nullptr;
  check_cublas_lt(api.preference_create(&raw), "cublasLtMatmulPreferenceCreate");
  MatmulPreference made(raw);
  set(api.preference_set, raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most_workspace_bytes);
  const std::array<std::pair<int, const Matrix*>, 4> operands{{
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &matmul.left},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &matmul.right},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, matmul.addend ? &*matmul.addend : &matmul.result},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &matmul.result},
  }};
  for (const auto& [attribute, matrix] : operands) {
    set(api.preference_set, raw, attribute, static_cast<std::uint32_t>(std::min(matrix->alignment, most_alignment)));
  }
  return made;
}

template <class Value, std::size_t count>
void read_knobs(const cublasLtMatmulAlgo_t& algorithm, const std::array<std::pair<int, const char*>, count>& names,
                std::vector<std::pair<std::string, std::int64_t>>& knobs) {
  for (const auto& [attribute, name] : names) {
    Value value{};
    std::size_t written = 0;
    if (cublas_lt()->algorithm_get(&algorithm, attribute, &value, sizeof value, &written) == CUBLAS_STATUS_SUCCESS) knobs.emplace_back(name, value);
  }
}

class MatmulPlan final : public hipdnn_port::Plan {
 public:
  explicit MatmulPlan(std::shared_ptr<const ConfiguredMatmul> configured)
      : configured_(std::move(configured)), layouts_(configured_->matmul) {
    const Matrix& result = configured_->matmul.result;
    const std::int64_t last = (configured_->matmul.batch - 1) * result.batch_stride + (result.columns - 1) * result.leading + result.rows;
    result_ = {configured_->matmul.result_operand, static_cast<std::size_t>(last) * hipdnn_port::element_bytes(configured_->matmul.dtype)};
    uids_ = configured_->matmul.uids;
    workspace_bytes_ = static_cast<std::int64_t>(configured_->workspace_bytes);
  }

  std::string describe() const override {
    std::string text = "cuBLASLt " + std::string(cublas_lt_version());
    for (const auto& [name, value] : configured_->knobs) {
      if (name == "ALGORITHM") text += " algorithm " + std::to_string(value);
    }
    return text;
  }

  void execute(void* const* pointers, void* workspace, const hipdnn_port::Launch& launch) const override {
    if (bind_device() != CUDA_SUCCESS) hipdnn_port::fail(HIPDNN_STATUS_EXECUTION_FAILED, "cannot use the device");
    const Matmul& matmul = configured_->matmul;
    const float alpha = matmul.scale, beta = matmul.addend_operand ? 1 : 0;
    void* result = pointers[matmul.result_operand];
    const void* addend = matmul.addend_operand ? pointers[*matmul.addend_operand] : result;
    const std::shared_ptr<const MatmulDescription> description = description_for(matmul.bias_operand ? pointers[*matmul.bias_operand] : nullptr);
    const auto stream = reinterpret_cast<CUstream>(launch.stream);
    check_cublas_lt(cublas_lt()->matmul(cublas_lt_handle(), description->raw(), &alpha, pointers[matmul.left_operand], layouts_.left.raw(),
                                        pointers[matmul.right_operand], layouts_.right.raw(), &beta, addend, layouts_.addend.raw(), result,
                                        layouts_.result.raw(), &configured_->algorithm, workspace, configured_->workspace_bytes,
                                        stream),
                    "cublasLtMatmul");
    after_plan({&result_, 1}, pointers, stream);
  }

 private:
  using Described = std::pair<const void*, std::shared_ptr<const MatmulDescription>>;

  /// The pointer of the bias is a part of the description.
  std::shared_ptr<const MatmulDescription> description_for(const void* bias) const {
    const std::scoped_lock lock(guard_);
    const auto found = std::ranges::find(descriptions_, bias, &Described::first);
    if (found != descriptions_.end()) return found->second;
    if (descriptions_.size() == kept_descriptions) descriptions_.erase(descriptions_.begin());
    auto made = std::make_shared<const MatmulDescription>(hipdnn_cuda::describe(*configured_, bias));
    return descriptions_.emplace_back(bias, std::move(made)).second;
  }

  std::shared_ptr<const ConfiguredMatmul> configured_;
  Layouts layouts_;
  /// Which operand it is, and its bytes.
  std::pair<std::size_t, std::size_t> result_;
  mutable std::mutex guard_;
  mutable std::vector<Described> descriptions_;
};

}  // namespace

std::vector<std::shared_ptr<const ConfiguredMatmul>> propose_matmuls(const Matmul& matmul, const VendorHandle& handle, int most) {
  const CublasLt* api = cublas_lt();
  if (api == nullptr) throw std::runtime_error(cublas_lt_failure());
  ConfiguredMatmul plain{matmul, matmul.left_dtype == HIPDNN_DATA_FLOAT && handle.allows_tf32()};
  // Any pointer does: alignment is asked for apart.
  const MatmulDescription description = describe(plain, &plain);
  const Layouts layouts(matmul);
  const MatmulPreference asked = preference(matmul);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
  int count = 0;
  check_cublas_lt(api->get_heuristic(cublas_lt_handle(), description.raw(), layouts.left.raw(), layouts.right.raw(), layouts.addend.raw(),
                                     layouts.result.raw(), asked.raw(), most, results.data(), &count),
                  "cublasLtMatmulAlgoGetHeuristic");
  std::vector<std::shared_ptr<const ConfiguredMatmul>> proposals;
  for (const cublasLtMatmulHeuristicResult_t& result : results) {
    if (static_cast<int>(proposals.size()) == count || result.state != CUBLAS_STATUS_SUCCESS) break;
    ConfiguredMatmul configured = plain;
    configured.algorithm = result.algo;
    configured.workspace_bytes = result.workspaceSize;
    // Algorithms may differ in more than cuBLASLt tells; one version of it proposes them in one order.
    configured.knobs.emplace_back("PROPOSAL", &result - results.data());
    read_knobs<std::int32_t>(result.algo, knob_names, configured.knobs);
    read_knobs<std::int16_t>(result.algo, narrow_knob_names, configured.knobs);
    proposals.push_back(std::make_shared<const ConfiguredMatmul>(std::move(configured)));
  }
  return proposals;
}

std::unique_ptr<hipdnn_port::Plan> build_matmul_plan(std::shared_ptr<const ConfiguredMatmul> configured) {
  return std::make_unique<MatmulPlan>(std::move(configured));
}

}  // namespace hipdnn_cuda
