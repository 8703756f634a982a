#include "stub_driver.h"

#include <utility>

#include "driver.h"

namespace {

stub_driver::Waits waits;
std::vector<stub_driver::Launched> launches;
bool is_recording = false;

CUresult allocate(CUdeviceptr* pointer, std::size_t) {
  *pointer = 64;
  return CUDA_SUCCESS;
}

CUresult write(CUdeviceptr, unsigned char, std::size_t, CUstream) {
  ++waits.written_bytes;
  return CUDA_SUCCESS;
}

CUresult capture_info(CUstream, int* status, unsigned long long*, CUgraph*, const CUgraphNode**, std::size_t*) {
  *status = is_recording ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult add_empty_node(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t) {
  ++waits.empty_nodes;
  return CUDA_SUCCESS;
}

CUresult set_dependencies(CUstream, CUgraphNode*, std::size_t, unsigned int) { return CUDA_SUCCESS; }

CUresult tell_version(int* version) {
  *version = 12030;
  return CUDA_SUCCESS;
}

CUresult launch(const CUlaunchConfig* config, CUfunction, void**, void**) {
  const bool overlaps = config->attribute_count == 1 && config->attributes->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
                        config->attributes->value.is_programmatic_stream_serialization_allowed == 1;
  launches.push_back({config->grid_y, overlaps});
  return CUDA_SUCCESS;
}

}  // namespace

namespace stub_driver {

Waits take_waits() { return std::exchange(waits, {}); }
std::vector<Launched> take_launches() { return std::exchange(launches, {}); }
void record(bool recording) { is_recording = recording; }

}  // namespace stub_driver

namespace hipdnn_cuda {

const Driver* driver() {
  static const Driver stub = [] {
    Driver made;
    made.mem_alloc = allocate;
    made.memset_async = write;
    made.stream_get_capture_info = capture_info;
    made.graph_add_empty_node = add_empty_node;
    made.stream_update_capture_dependencies = set_dependencies;
    made.driver_get_version = tell_version;
    made.launch_kernel = launch;
    return made;
  }();
  return &stub;
}

int chosen_device() { return 0; }
CUresult bind_device() { return CUDA_SUCCESS; }
void set_last_failure(std::string_view) {}
const char* last_failure() { return ""; }

}  // namespace hipdnn_cuda
