#include "engine_plugin/staged_memory.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <string>

#include "engine_plugin/failure.h"

namespace hipdnn_plugin {
namespace {

Hip find_hip() {
  for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == nullptr || dlsym(library, "hipdnnHostSetThreads_ext") != nullptr) continue;
    return {reinterpret_cast<decltype(&::hipMemcpyAsync)>(dlsym(library, "hipMemcpyAsync")),
            reinterpret_cast<decltype(&::hipStreamSynchronize)>(dlsym(library, "hipStreamSynchronize"))};
  }
  return {};
}

void check_hip(hipError_t status, const char* call) {
  if (status != hipSuccess) throw Failure(HIPDNN_PLUGIN_STATUS_INTERNAL_ERROR, std::string(call) + ": HIP error " + std::to_string(status));
}

}  // namespace

const Hip* loaded_hip() {
  // Whoever executes has its memory from a HIP that is loaded by then.
  static const Hip hip = find_hip();
  return hip.memcpy_async != nullptr && hip.stream_synchronize != nullptr ? &hip : nullptr;
}

StagedMemory::StagedMemory(const Hip& hip, hipStream_t stream, std::span<const Operand> operands,
                           std::span<const hipdnnPluginDeviceBuffer_t> buffers, std::size_t workspace_bytes)
    : hip_(hip), stream_(stream), workspace_(workspace_bytes) {
  for (const hipdnnPluginDeviceBuffer_t& buffer : buffers) {
    const auto operand = std::ranges::find(operands, buffer.uid, &Operand::uid);
    if (operand == operands.end() || buffer.ptr == nullptr) continue;
    copies_.push_back({buffer.ptr, std::vector<Line>((operand->bytes + sizeof(Line) - 1) / sizeof(Line)), &*operand});
    staged_.push_back({buffer.uid, copies_.back().host.data()});
    // Results too: what lies between their elements is another's.
    copy(staged_.back().ptr, buffer.ptr, operand->bytes);
  }
  wait();
}

void StagedMemory::finish() {
  for (const Copy& one : copies_) {
    if (one.operand->is_result) copy(one.device, one.host.data(), one.operand->bytes);
  }
  wait();
}

void StagedMemory::copy(void* to, const void* from, std::size_t bytes) const {
  check_hip(hip_.memcpy_async(to, from, bytes, hipMemcpyDefault, stream_), "hipMemcpyAsync");
}

void StagedMemory::wait() const { check_hip(hip_.stream_synchronize(stream_), "hipStreamSynchronize"); }

}  // namespace hipdnn_plugin
