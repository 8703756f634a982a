// What the host library gives to the front of the C API: its name, its engines (preferred first), and the setting that only it has.
#include <algorithm>

#include "engines/onednn_engine.h"
#include "engines/onednn_memory.h"
#include "engines/rowwise_engine.h"
#include "frontend/engine.h"
#include "frontend/export.h"
#include "frontend/handle.h"
#include "frontend/plugin_api.h"
#include "frontend/status.h"
#include "hipdnn_host.h"

namespace hipdnn_port {

/// Each in a file of its name: stateless, usable from any thread.
const Engine& sdpa_engine();
const Engine& reduction_engine();
const Engine& custom_op_engine();
const Engine& block_scale_engine();
const Engine& block_matmul_engine();
const Engine& panel_matmul_engine();
const Engine& gemv_engine();
const Engine& max_pool_engine();
const Engine& quantized_engine();
const Engine& winograd_engine();
const Engine& groups_engine();

std::string_view library_name() { return "hipdnn_host"; }

const char* library_version() { return HIPDNN_HOST_VERSION; }

bool uses_constants() { return true; }

std::shared_ptr<void> make_vendor_handle() { return nullptr; }

const std::vector<const Engine*>& engines() {
  static const std::vector<const Engine*> ranked{&onednn_engine(), &sdpa_engine(), &rowwise_engine(), &reduction_engine(), &custom_op_engine(),
                                                  &block_scale_engine(), &block_matmul_engine(), &panel_matmul_engine(), &gemv_engine(), &max_pool_engine(),
                                                  &quantized_engine(), &winograd_engine(), &groups_engine()};
  return ranked;
}

namespace {

/// Has oneDNN on this CPU arithmetic of the 16-bit type of a matmul's weights? Elsewhere it computes in float32 with copies of them, or slowly.
bool multiplies_as_stored(const Graph& graph) {
  const Tensor& weights = graph.tensor(graph.nodes[0].tensor(HIPDNN_ATTR_OPERATION_MATMUL_BDESC));
  return onednn::isa_includes(weights.dtype == HIPDNN_DATA_HALF ? dnnl_cpu_isa_avx512_core_fp16 : dnnl_cpu_isa_avx512_core_bf16);
}

/// What was compared with oneDNN's code of AVX2 only.
bool has_avx2_at_most() { return onednn::isa_includes(dnnl_cpu_isa_avx2) && !onednn::isa_includes(dnnl_cpu_isa_avx512_core); }

}  // namespace

std::vector<Proposal> rank(const Graph& graph, const PlanOptions&, std::string& refusals) {
  std::vector<Proposal> proposals;
  for (const Engine* engine : engines()) {
    if (const auto reason = engine->refuses(graph)) {
      refusals += text("\n  ", engine->name(), ": ", *reason);
      continue;
    }
    proposals.push_back({engine, {}, nullptr});
  }
  const auto put_first = [&](const Engine& engine, const auto& is_better) {
    const auto found = std::ranges::find(proposals, &engine, &Proposal::engine);
    if (found != proposals.end() && is_better()) std::rotate(proposals.begin(), found, found + 1);
  };
  put_first(panel_matmul_engine(), [&] { return !multiplies_as_stored(graph); });
  put_first(gemv_engine(), has_avx2_at_most);
  put_first(winograd_engine(), has_avx2_at_most);
  put_first(groups_engine(), has_avx2_at_most);
  return proposals;
}

}  // namespace hipdnn_port

using namespace hipdnn_port;

extern "C" {

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnHostSetThreads_ext(hipdnnHandle_t handle, int threads) {
  return guard(__func__, [&] {
    HandleState& state = *require_argument(handle, "handle").state;
    if (threads < 1) fail(HIPDNN_STATUS_BAD_PARAM, "expected at least 1 thread, got ", threads);
    state.threads = threads;
  });
}

HIPDNN_PORT_EXPORT hipdnnStatus_t hipdnnHostSetPluginApi_ext(int minor) {
  return guard(__func__, [&] {
    if (minor < 0) fail(HIPDNN_STATUS_BAD_PARAM, "no version is 1.", minor);
    set_plugin_api(minor);
  });
}

}  // extern "C"
